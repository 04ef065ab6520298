"""The bodies of requests and answers, one module for each endpoint, and what they mean to a model."""
