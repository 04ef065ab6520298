"""How well does `ToolIndex` find the tool that a request is about, among a thousand?

    python benchmarks/tool_retrieval.py [--quick] [--embed module:function]

The catalogue is synthetic and always the same: verbs times things, in twenty domains (``mail_create_draft``,
``calendarDeleteMeeting``, ...), each tool with a description and parameters. For each tool there are three requests,
none of which holds its name:

- same: what the tool does and to what, in words of its description;
- near: the thing in words of the description, what to do with it in others, so that ten tools are equally near;
- far: other words for both, which stand nowhere in the tool, and only the domain to go by.

Printed: recall@k, the share of requests whose tool is among the first k; and the times to build, to save, to load, and
to answer a query. ``--embed`` names a function that gives vectors for texts, to compare with.
"""

from __future__ import annotations

import importlib
import itertools
import json
import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import arguments, save

from punchcard import ToolIndex

SEED = 20


@dataclass(frozen=True)
class Verb:
    """``name`` in the tool's name, ``says`` in its description, ``asks`` in requests (``{}``: the thing)."""

    name: str
    says: str
    asks: tuple[str, ...]


@dataclass(frozen=True)
class Thing:
    """``name`` in the tool's name, ``also`` in its description, ``hidden`` in far requests only; its parameter."""

    name: str
    also: str
    hidden: str
    parameter: tuple[str, str]


VERBS = [
    Verb("create", "Create", ("I need a new {}", "make me another {}", "set up a {} for me")),
    Verb("delete", "Delete", ("get rid of that {}", "remove the {}", "I no longer want the {}")),
    Verb("list", "List", ("show me every {}", "which {} are there", "what {} do we have")),
    Verb("update", "Update", ("change the {}", "correct a mistake in the {}", "the {} must be altered")),
    Verb("search", "Search for", ("find me a {}", "look up the {}", "where is the {}")),
    Verb("export", "Export", ("I want to download the {}", "give me a file of the {}", "save the {} to disk")),
    Verb("share", "Share", ("let my colleague see the {}", "give Anna access to the {}", "pass the {} on")),
    Verb("archive", "Archive", ("put the {} away for later", "move the old {} out of sight", "store the {} for good")),
    Verb("approve", "Approve", ("I agree with the {}", "sign off the {}", "say yes to the {}")),
    Verb(
        "compare", "Compare", ("how does one {} differ from the other", "tell two {} apart", "weigh {} against another")
    ),
]

# domain: what it is called in descriptions and requests, and its things
DOMAINS: dict[str, tuple[str, list[Thing]]] = {
    "mail": ("mailbox", [
        Thing("message", "email", "note from my inbox", ("recipient", "address that it goes to")),
        Thing("draft", "unsent email", "half-finished letter", ("subject", "line above the text")),
        Thing("filter", "rule for incoming mail", "thing that sorts my post", ("pattern", "of the sender")),
        Thing("signature", "closing lines of an email", "sign-off under my letters", ("text", "what it says")),
        Thing("attachment", "file in an email", "document that came with the letter", ("size", "in megabytes")),
    ]),
    "calendar": ("schedule", [
        Thing("meeting", "appointment", "get-together on Tuesday", ("start", "when it begins")),
        Thing("reminder", "alert before something is due", "nudge so I do not forget", ("minutes", "how long before")),
        Thing("holiday", "day off", "free Monday", ("date", "which day")),
        Thing("room_booking", "reservation of a conference room", "place to sit together", ("room", "its name")),
        Thing("invitation", "request to attend", "thing I was asked to join", ("guest", "who is asked")),
    ]),
    "bank": ("bank account", [
        Thing("transfer", "payment to another account", "money I sent to my sister", ("iban", "number of the account")),
        Thing("statement", "monthly overview of movements", "summary of what I spent", ("month", "of the year")),
        Thing("card", "debit or credit card", "plastic in my wallet", ("limit", "most that can be spent")),
        Thing("standing_order", "payment that repeats", "rent that goes out by itself", ("interval", "how often")),
        Thing("loan", "credit with interest", "sum that I owe", ("rate", "interest in percent")),
    ]),
    "travel": ("trip", [
        Thing("flight", "plane ticket", "seat to Lisbon by air", ("airport", "code of the departure")),
        Thing("hotel", "place to stay overnight", "bed near the beach", ("nights", "how many")),
        Thing("itinerary", "plan of the journey", "order of the stops", ("destination", "where it goes")),
        Thing("rental_car", "hired vehicle", "something to drive on the island", ("class", "small, medium or large")),
        Thing("visa", "permit to enter a country", "paper for the border", ("country", "that is entered")),
    ]),
    "shop": ("online store", [
        Thing("order", "purchase of a customer", "stuff someone bought", ("number", "of the purchase")),
        Thing("product", "article for sale", "item in the window", ("price", "in euros")),
        Thing("discount", "price reduction", "special offer", ("percent", "how much is taken off")),
        Thing("review", "rating by a customer", "stars that somebody gave", ("rating", "from one to five")),
        Thing("return_label", "sticker to send goods back", "slip for the parcel", ("carrier", "who delivers")),
    ]),
    "music": ("music library", [
        Thing("playlist", "list of songs", "mix for the party", ("title", "what it is called")),
        Thing("track", "song", "tune that I hummed", ("artist", "who performs it")),
        Thing("album", "record", "whole disc by the band", ("year", "of release")),
        Thing("podcast", "spoken series", "talk show for the commute", ("episode", "number of it")),
        Thing("radio_station", "live broadcast", "channel with the news", ("frequency", "in megahertz")),
    ]),
    "home": ("smart home", [
        Thing("light", "lamp", "bulb over the table", ("brightness", "in percent")),
        Thing("thermostat", "heating control", "dial on the wall", ("temperature", "in degrees")),
        Thing("door_lock", "lock of an entrance", "bolt at the front", ("code", "that opens it")),
        Thing("camera", "surveillance video", "eye in the garden", ("angle", "where it points")),
        Thing("routine", "automatic sequence", "what happens when I wake up", ("trigger", "what starts it")),
    ]),
    "health": ("health record", [
        Thing("prescription", "medicine ordered by a doctor", "pills I have to take", ("dose", "in milligrams")),
        Thing("lab_result", "blood test", "values from the laboratory", ("marker", "what was measured")),
        Thing("vaccination", "immunisation", "jab against the flu", ("disease", "that it prevents")),
        Thing("allergy", "intolerance", "thing that makes me sneeze", ("substance", "that causes it")),
        Thing("workout", "training session", "run through the park", ("duration", "in minutes")),
    ]),
    "code": ("source repository", [
        Thing("branch", "line of development", "fork of the work", ("base", "where it starts")),
        Thing("pull_request", "proposed change to the code", "patch that waits", ("reviewer", "who reads it")),
        Thing("issue", "bug report", "complaint that it crashes", ("severity", "how bad it is")),
        Thing("release", "published version", "build for the customers", ("tag", "name of the version")),
        Thing("pipeline", "continuous integration run", "checks after each push", ("stage", "part of the run")),
    ]),
    "hr": ("personnel office", [
        Thing("employee", "member of staff", "person who works here", ("department", "where they work")),
        Thing("leave_request", "application for vacation", "wish for two weeks off", ("days", "how many")),
        Thing("payslip", "monthly salary statement", "sheet with my wages", ("period", "of payment")),
        Thing("job_posting", "advertisement of a vacancy", "opening for a cook", ("position", "that is open")),
        Thing("appraisal", "performance evaluation", "yearly talk with the boss", ("goal", "what was agreed")),
    ]),
    "crm": ("customer database", [
        Thing("lead", "potential customer", "somebody who may buy", ("source", "where they heard of us")),
        Thing("deal", "sale in negotiation", "bargain we are about to close", ("value", "in dollars")),
        Thing("contact", "person at a company", "one whom I can phone", ("company", "that they belong to")),
        Thing("campaign", "marketing action", "push for the spring", ("budget", "that can be spent")),
        Thing("ticket", "support case", "problem that a client told us", ("priority", "how urgent it is")),
    ]),
    "weather": ("weather service", [
        Thing("forecast", "prediction for the coming days", "outlook for the weekend", ("city", "where")),
        Thing("storm_warning", "alert of heavy wind", "danger from the gale", ("region", "that is affected")),
        Thing("rainfall", "amount of precipitation", "how wet it was", ("millimetres", "that fell")),
        Thing("pollen_count", "flower dust in the air", "hay fever level", ("plant", "which one")),
        Thing("tide", "sea level over the day", "when the water is high", ("harbour", "by its name")),
    ]),
    "school": ("school administration", [
        Thing("course", "class that is taught", "lessons in chemistry", ("teacher", "who gives it")),
        Thing("grade", "mark of a pupil", "how my daughter did", ("subject", "that was examined")),
        Thing("timetable", "hours of the week", "which lesson comes when", ("weekday", "from Monday")),
        Thing("exam", "written test", "paper at the end of term", ("topic", "what is asked")),
        Thing("enrolment", "registration of a pupil", "signing up my son", ("form", "year of school")),
    ]),
    "fleet": ("vehicle fleet", [
        Thing("truck", "lorry", "heavy wagon", ("plate", "registration number")),
        Thing("driver", "person at the wheel", "man on the road", ("licence", "its class")),
        Thing("route", "way between stops", "path they take", ("stops", "in order")),
        Thing("fuel_log", "record of refuelling", "what we put in the tank", ("litres", "that were filled")),
        Thing("inspection", "technical check", "visit to the garage", ("defect", "that was found")),
    ]),
    "library": ("public library", [
        Thing("book", "printed volume", "novel on the shelf", ("isbn", "its number")),
        Thing("loan_period", "time until it is due", "weeks that I may keep it", ("weeks", "how many")),
        Thing("reader", "registered borrower", "one who has a card", ("membership", "its kind")),
        Thing("fine", "fee for late return", "penalty for being slow", ("amount", "in cents")),
        Thing("hold", "reservation of a title", "copy set aside for me", ("pickup", "at which branch")),
    ]),
    "kitchen": ("cooking assistant", [
        Thing("recipe", "instructions for a dish", "way to make soup", ("servings", "how many people eat")),
        Thing("shopping_list", "groceries to buy", "what is missing in the fridge", ("item", "to be bought")),
        Thing("meal_plan", "menu of the week", "what we eat from Monday on", ("diet", "such as vegetarian")),
        Thing("timer", "countdown", "beep when the eggs are done", ("seconds", "until it rings")),
        Thing("pantry_item", "food in stock", "jar in the cupboard", ("expiry", "best before")),
    ]),
    "photo": ("photo collection", [
        Thing("picture", "image", "snapshot of the dog", ("resolution", "in pixels")),
        Thing("gallery", "set of images", "shots of our wedding", ("cover", "which comes first")),
        Thing("face_tag", "name of a person in an image", "who is in it", ("person", "that is seen")),
        Thing("edit", "crop or colour correction", "touch-up", ("contrast", "from 0 to 100")),
        Thing("print", "copy on paper", "something for the frame", ("format", "in centimetres")),
    ]),
    "cloud": ("cloud platform", [
        Thing("server", "virtual machine", "box in the data centre", ("memory", "in gigabytes")),
        Thing("bucket", "object storage", "place for our blobs", ("retention", "days that objects are kept")),
        Thing("database", "managed tables", "where the records live", ("engine", "such as postgres")),
        Thing("firewall_rule", "filter of network traffic", "what may come in", ("port", "that is opened")),
        Thing("certificate", "TLS credentials of a domain", "padlock for the site", ("domain", "that it is for")),
    ]),
    "legal": ("law office", [
        Thing("contract", "agreement between parties", "deal on paper", ("party", "who signs")),
        Thing("clause", "paragraph of an agreement", "sentence about liability", ("section", "where it stands")),
        Thing("court_date", "hearing", "day before the judge", ("court", "which one")),
        Thing("invoice", "bill for services", "what the client has to pay", ("hours", "that were worked")),
        Thing("evidence", "proof in a case", "exhibit for the trial", ("origin", "where it was found")),
    ]),
    "farm": ("farm management", [
        Thing("field", "piece of land", "acre behind the barn", ("crop", "what grows there")),
        Thing("harvest", "yield of a crop", "grain we brought in", ("tonnes", "that were cut")),
        Thing("animal", "livestock", "cow with the bell", ("breed", "its race")),
        Thing("irrigation", "watering of the land", "sprinklers at night", ("duration", "in hours")),
        Thing("fertiliser", "nutrients for the soil", "dung for the beet", ("nitrogen", "in kilograms")),
    ]),
}  # fmt: skip


def catalogue(count: int) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """Definitions of tools in a shuffled order, and for each kind of request one for each tool."""
    rng = random.Random(SEED)
    combined = list(itertools.product(DOMAINS.items(), range(5), VERBS))
    rng.shuffle(combined)
    tools: list[dict[str, Any]] = []
    requests: dict[str, list[str]] = {"same": [], "near": [], "far": []}
    for (domain, (place, things)), number, verb in combined[:count]:
        thing = things[number]
        words = [domain, verb.name, *thing.name.split("_")]
        camel = words[0] + "".join(word.title() for word in words[1:])
        name, description = thing.parameter
        tools.append({
            "name": rng.choice(["_".join(words), camel]),
            "description": f"{verb.says} a {thing.name.replace('_', ' ')} ({thing.also}) in the {place}.",
            "parameters": {
                "type": "object",
                "properties": {
                    f"{thing.name}_id": {"type": "string", "description": "which one"},
                    name: {"type": "string", "description": description},
                },
            },
        })  # fmt: skip
        ask = rng.choice(verb.asks)
        requests["same"].append(f"please {verb.says.lower()} the {thing.also}")
        requests["near"].append(f"{ask.format(thing.also)}, please")
        requests["far"].append(f"{ask.format(thing.hidden)}, in the {place}")
    for kind in requests.values():
        for tool, request in zip(tools, kind, strict=True):
            assert tool["name"].lower() not in request.lower()
    return tools, requests


def milliseconds(work: Any, times: int = 1) -> tuple[float, Any]:
    """The median of ``times`` runs, and what the last gave."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        result = work()
        taken.append(1e3 * (time.perf_counter() - started))
    return float(np.median(taken)), result


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--embed", metavar="MODULE:FUNCTION", help="ranks by this embedding instead of BM25")
    args = parser.parse_args()
    embed = None
    if args.embed:
        module, _, function = args.embed.partition(":")
        embed = getattr(importlib.import_module(module), function)
    tools, requests = catalogue(100 if args.quick else 1000)
    ToolIndex(tools[:1], embed=embed)  # imports
    build, index = milliseconds(lambda: ToolIndex(tools, embed=embed), 5)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tools.index"
        write, _ = milliseconds(lambda: index.save(path), 5)
        load, loaded = milliseconds(lambda: ToolIndex.load(path, tools, embed=embed), 5)
        size = path.stat().st_size
    found: dict[str, Any] = {"tools": len(tools), "bytes": size}
    found |= {"build_ms": build, "save_ms": write, "load_ms": load}
    taken = []
    for kind, asked in requests.items():
        ranks = []
        for position, request in enumerate(asked):
            started = time.perf_counter()
            selected = loaded.select(request, k=20)
            taken.append(1e3 * (time.perf_counter() - started))
            names = [tool.name for tool in selected]
            wanted = tools[position]["name"]
            ranks.append(names.index(wanted) if wanted in names else len(tools))
        for k in (1, 5, 8, 10, 20):
            found[f"{kind} recall@{k}"] = sum(rank < k for rank in ranks) / len(ranks)
    found |= {"query_ms": float(np.median(taken)), "query_p99_ms": float(np.percentile(taken, 99))}
    found = {name: round(value, 3) for name, value in found.items()}
    print(json.dumps(found, indent=1))
    save("tool_retrieval", found, args)


if __name__ == "__main__":
    main()
