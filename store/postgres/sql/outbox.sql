-- Events on their way to others (R54).

-- The events of a claim or change, in its transaction, where that made the row
-- what it is. Version and tail alone don't say so: another process may have made
-- a change with an equal event. In a transaction that a handler shares, the row
-- is locked and its own, while xmin may be that of a savepoint.
-- name: announce
INSERT INTO settle.outbox (event, operation, intent, type, data, at, due_at)
SELECT k.event, o.id, o.intent, k.type, k.data, o.tail_at, clock_timestamp()
FROM settle.operation o, unnest($4::uuid[], $5::text[], $6::bytea[]) WITH ORDINALITY AS k(event, type, data, n)
WHERE o.id = $1::uuid AND o.version = $2::int AND o.tail = $3::bytea AND ($7::boolean OR o.xmin = pg_current_xact_id_if_assigned()::xid)
ORDER BY k.n
ON CONFLICT (event) DO NOTHING

-- Of each operation the first one only, so that they leave in order.
-- name: fetch
WITH due AS MATERIALIZED (
    SELECT seq FROM settle.outbox x
    WHERE due_at <= statement_timestamp() AND NOT EXISTS (SELECT FROM settle.outbox e WHERE e.operation = x.operation AND e.seq < x.seq)
    ORDER BY due_at, seq LIMIT $1::int FOR UPDATE SKIP LOCKED
), fetched AS (
    UPDATE settle.outbox x SET deliveries = deliveries + 1, due_at = statement_timestamp() + $2::interval
    FROM due WHERE x.seq = due.seq RETURNING x.*
)
SELECT {outgoing} FROM fetched x {of_intent} ORDER BY x.seq

-- name: outgoing
x.seq, x.event, x.operation, x.at, x.due_at, x.deliveries, x.type, x.data, {intent}

-- name: of_intent
JOIN settle.intent i ON i.id = x.intent JOIN settle.tenant n ON n.id = i.tenant

-- name: delivered
DELETE FROM settle.outbox WHERE seq = ANY ($1::bigint[])

-- name: undelivered
UPDATE settle.outbox SET due_at = CASE WHEN NOT $4::boolean THEN statement_timestamp() + $3::interval END
WHERE seq = $1::bigint AND deliveries = $2::int

-- name: waiting
SELECT {outgoing} FROM settle.outbox x {of_intent}
WHERE x.seq > $1::bigint AND ($2::text = '' OR n.name = $2::text) AND (NOT $3::boolean OR x.due_at IS NULL)
ORDER BY x.seq LIMIT $4::int

-- name: redeliver
UPDATE settle.outbox x SET due_at = statement_timestamp()
FROM settle.intent i JOIN settle.tenant n ON n.id = i.tenant
WHERE x.event = $2::uuid AND i.id = x.intent AND n.name = $1::text RETURNING x.seq

-- name: discard
DELETE FROM settle.outbox x USING settle.intent i JOIN settle.tenant n ON n.id = i.tenant
WHERE x.event = $2::uuid AND i.id = x.intent AND n.name = $1::text RETURNING x.seq
