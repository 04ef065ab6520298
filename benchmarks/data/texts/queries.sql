WITH monthly AS ( -- what each region sold, month by month
    SELECT o.region_id, r.name AS region, EXTRACT_MONTH(o.placed_at) AS month, SUM(l.quantity * l.price) AS total
    FROM orders o
    JOIN order_lines AS l ON l.order_id = o.id
    LEFT OUTER JOIN regions r ON r.id = o.region_id
    WHERE o.status IN ('paid', 'shipped', 'closed') AND o.placed_at BETWEEN DATE '2025-01-01' AND DATE '2025-12-31'
    GROUP BY o.region_id, r.name, EXTRACT_MONTH(o.placed_at)
)
SELECT m.region, m.month, m.total, p.amount,
       CASE WHEN p.amount IS NULL THEN 'no plan'
            WHEN m.total >= p.amount * 1.05 THEN 'above'
            WHEN m.total < p.amount * 0.95 THEN 'below'
            ELSE 'on plan' END AS verdict,
       RANK() OVER (PARTITION BY m.month ORDER BY m.total DESC) AS place
FROM monthly m LEFT JOIN plans p ON p.region_id = m.region_id AND p.month = m.month
WHERE NOT (m.total = 0 OR m.region LIKE 'test%')
ORDER BY m.month ASC, m.total DESC NULLS LAST
LIMIT 100 OFFSET 20;

CREATE TABLE IF NOT EXISTS customers (
    id INTEGER PRIMARY KEY,
    email VARCHAR(255) NOT NULL UNIQUE,
    name VARCHAR(120) NOT NULL DEFAULT 'unknown',
    credit NUMERIC(10, 2) DEFAULT 0.00 CHECK (credit >= 0),
    referrer INTEGER REFERENCES customers (id) ON DELETE SET NULL,
    CONSTRAINT name_and_email UNIQUE (name, email)
);

INSERT INTO customers (id, email, name, credit)
VALUES (1, 'ada@example.com', 'Ada', 120.50), (2, 'grace@example.com', 'Grace', 0), (3, 'o''hara@example.com', 'Scarlett', 17.25);

UPDATE customers AS c SET credit = c.credit + 10, name = UPPER(TRIM(c.name)) || ' *'
WHERE EXISTS (SELECT * FROM orders o WHERE o.customer_id = c.id AND o.total > ALL (SELECT limit_value FROM thresholds));

DELETE FROM sessions WHERE expires_at < TIMESTAMP '2025-06-30 12:00:00' AND user_id NOT IN (SELECT id FROM administrators);

SELECT DISTINCT a.city, COUNT(DISTINCT a.customer_id), MAX(CAST(a.since AS DATE))
FROM addresses a NATURAL JOIN countries CROSS JOIN settings s
GROUP BY a.city HAVING COUNT(*) > :least AND MIN(a.since) IS NOT NULL
UNION ALL
SELECT 'nowhere', 0, NULL FROM dual;

DROP TABLE IF EXISTS scratch, scratch_old