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

-- Of each operation the first one only, so that they leave in order. The update
-- finds its rows by where they are: a join would scan the whole table wherever the
-- statistics are older than the backlog. A row that was moved meanwhile isn't
-- there any more, and left for the next time.
-- name: fetch
WITH due AS MATERIALIZED (
    SELECT x.ctid AS at FROM settle.outbox x
    WHERE due_at <= statement_timestamp() AND (leased_until IS NULL OR leased_until <= statement_timestamp())
      AND NOT EXISTS (SELECT FROM settle.outbox e WHERE e.operation = x.operation AND e.seq < x.seq)
    ORDER BY due_at, seq LIMIT $1::int FOR UPDATE SKIP LOCKED
), fetched AS (
    UPDATE settle.outbox x SET deliveries = deliveries + 1, leased_until = statement_timestamp() + $2::interval
    WHERE x.ctid = ANY (ARRAY (SELECT at FROM due)) RETURNING x.*
)
SELECT {outgoing} FROM fetched x {of_intent} ORDER BY x.seq

-- name: outgoing
x.seq, x.event, x.operation, x.at, CASE WHEN x.due_at IS NOT NULL THEN greatest(x.due_at, x.leased_until) END, x.deliveries, x.type, x.data,
    i.id, i.tenant, n.name, i.subject, i.task, i.goal

-- name: of_intent
JOIN settle.intent i ON i.id = x.intent JOIN settle.tenant n ON n.id = i.tenant

-- name: delivered
DELETE FROM settle.outbox WHERE seq = ANY ($1::bigint[])

-- What is behind it is put off with it, or a backlog would be looked through by
-- every fetch.
-- name: undelivered
WITH moved AS (
    UPDATE settle.outbox SET due_at = CASE WHEN NOT $4::boolean THEN statement_timestamp() + $3::interval END, leased_until = NULL
    WHERE seq = $1::bigint AND deliveries = $2::int RETURNING operation, seq, due_at
)
UPDATE settle.outbox x SET due_at = coalesce(m.due_at, statement_timestamp() + {behind_dead})
FROM moved m WHERE x.operation = m.operation AND x.seq > m.seq AND x.due_at IS NOT NULL

-- name: promote
UPDATE settle.outbox SET due_at = statement_timestamp()
WHERE operation = ANY ($1::uuid[]) AND due_at > statement_timestamp() AND leased_until IS NULL

-- name: waiting
SELECT {outgoing} FROM settle.outbox x {of_intent}
WHERE x.seq > $1::bigint AND ($2::text = '' OR n.name = $2::text) AND (NOT $3::boolean OR x.due_at IS NULL)
ORDER BY x.seq LIMIT $4::int

-- name: redeliver
UPDATE settle.outbox x SET due_at = statement_timestamp(), leased_until = NULL
FROM settle.intent i JOIN settle.tenant n ON n.id = i.tenant
WHERE x.event = $2::uuid AND i.id = x.intent AND n.name = $1::text RETURNING x.operation

-- name: discard
DELETE FROM settle.outbox x USING settle.intent i JOIN settle.tenant n ON n.id = i.tenant
WHERE x.event = $2::uuid AND i.id = x.intent AND n.name = $1::text RETURNING x.operation
