-- Leases and due work.

-- Leases of several attempts at once. Rows are locked in the order of their ids
-- and before the clock is read. The version stays, so that an outcome on its
-- way keeps its guard (R22).
-- name: renew
WITH held AS MATERIALIZED (
    SELECT o.id FROM unnest($1::uuid[], $2::uuid[]) AS h(id, owner) JOIN settle.operation o ON o.id = h.id AND o.owner = h.owner
    WHERE o.state = 'running' ORDER BY o.id FOR NO KEY UPDATE OF o
), t AS MATERIALIZED (
    SELECT clock_timestamp() AS now FROM (SELECT count(*) FROM held) locked
)
UPDATE settle.operation o SET lease_until = t.now + $3::interval, due_at = t.now + $3::interval,
    moment = greatest(o.moment, t.now + $3::interval + o.visibility / 1000 * interval '1 microsecond')
FROM t, unnest($1::uuid[], $2::uuid[]) AS h(id, owner)
WHERE o.id IN (SELECT id FROM held) AND o.id = h.id AND o.owner = h.owner AND o.state = 'running' AND o.lease_until > t.now
RETURNING o.id, o.owner

-- Due work, fair over pairs of tool and tenant: from pair to pair along the
-- index, behind the cursor first, then from the start up to it (R36). Rows that
-- another taker holds are stepped over. No version changes: an expired lease
-- proves nothing (R22).
-- name: take
WITH RECURSIVE t AS MATERIALIZED (SELECT clock_timestamp() AS now),
behind AS (
    (SELECT tool, tenant FROM settle.operation
      WHERE due_at IS NOT NULL AND (tool, tenant) > ($1::text, $2::uuid) ORDER BY tool, tenant LIMIT 1)
    UNION ALL
    SELECT n.tool, n.tenant FROM behind p, LATERAL (SELECT tool, tenant FROM settle.operation
      WHERE due_at IS NOT NULL AND (tool, tenant) > (p.tool, p.tenant) ORDER BY tool, tenant LIMIT 1) n
), before AS (
    (SELECT tool, tenant FROM settle.operation
      WHERE due_at IS NOT NULL AND (tool, tenant) <= ($1::text, $2::uuid) ORDER BY tool, tenant LIMIT 1)
    UNION ALL
    SELECT n.tool, n.tenant FROM before p, LATERAL (SELECT tool, tenant FROM settle.operation
      WHERE due_at IS NOT NULL AND (tool, tenant) > (p.tool, p.tenant) AND (tool, tenant) <= ($1::text, $2::uuid)
      ORDER BY tool, tenant LIMIT 1) n
), due AS MATERIALIZED (
    SELECT d.id, d.due_at, p.half FROM (SELECT 1 AS half, * FROM behind UNION ALL SELECT 2, * FROM before) p,
        LATERAL (SELECT id, due_at FROM settle.operation
            WHERE tool = p.tool AND tenant = p.tenant AND due_at <= (SELECT now FROM t)
            ORDER BY due_at, id LIMIT $3::bigint FOR NO KEY UPDATE SKIP LOCKED) d
    WHERE p.tool <> ALL ($4::text[])
    LIMIT $5::bigint
), taken AS (
    UPDATE settle.operation o SET due_at = t.now + $6::interval FROM due, t WHERE o.id = due.id
    RETURNING o.*, due.half, due.due_at AS was_due
)
SELECT {entry} FROM taken o {with_intent}
ORDER BY o.half, o.tool, o.tenant, o.was_due, o.id

-- name: take_one
WITH t AS MATERIALIZED (SELECT clock_timestamp() AS now),
due AS MATERIALIZED (
    SELECT id FROM settle.operation
    WHERE id = $1::uuid AND due_at <= (SELECT now FROM t) AND tool <> ALL ($2::text[])
    FOR NO KEY UPDATE SKIP LOCKED
), taken AS (
    UPDATE settle.operation o SET due_at = t.now + $3::interval FROM due, t WHERE o.id = due.id RETURNING o.*
)
SELECT {entry} FROM taken o {with_intent}

-- name: audit
INSERT INTO settle.audit (operation, at, kind, actor, detail)
SELECT k.operation, t.now, k.kind, k.actor, k.detail
FROM (SELECT clock_timestamp() AS now) t,
    unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS k(operation, kind, actor, detail, n)
ORDER BY k.n
