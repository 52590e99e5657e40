-- Forgetting: purges, erasure, closing.

-- name: purge_page
SELECT id FROM settle.operation WHERE id > $1::uuid ORDER BY id LIMIT $2::int

-- What stays of a row has to be known for ever (R51). A proposal holds the
-- result that a person gave.
-- name: entombed
flags = flags | {purged}, arguments = NULL, result = NULL, fields = NULL, trace = NULL, call_id = NULL,
    fingerprint = '\x0000000000000000000000000000000000000000000000000000000000000000'

-- Settled longer than their retention, and hanging on nothing open. A step and
-- a compensation are in the intent of the operation that they belong to.
-- name: purge
WITH gone AS (
    UPDATE settle.operation o SET {entombed}
    WHERE o.id = ANY ($1::uuid[]) AND o.flags & {purged} = 0 AND o.state >= 'completed' AND o.retention > 0
      AND o.settled_at + o.retention / 1000 * interval '1 microsecond' <= clock_timestamp()
      AND NOT EXISTS (SELECT FROM settle.operation p WHERE p.id = o.parent AND p.state < 'completed')
      AND NOT EXISTS (SELECT FROM settle.operation k WHERE k.intent = o.intent AND k.parent = o.id AND k.state < 'completed')
      AND NOT EXISTS (SELECT FROM settle."case" c WHERE c.operation = o.id AND c.closed_at IS NULL)
    RETURNING o.id
), dropped AS (
    UPDATE settle."case" c SET proposal = NULL FROM gone WHERE c.operation = gone.id AND c.proposal IS NOT NULL
)
SELECT count(*)::int FROM gone

-- Tombstones of intents that are closed for long enough, but for what has to
-- stand in the way of others for ever: the one operation that Unique admits
-- (R14), and the writes on a resource, without which an older one that they
-- overtook would start again (R31).
-- name: depart
WITH gone AS (
    DELETE FROM settle.operation o
    WHERE o.id = ANY ($1::uuid[]) AND o.state >= 'completed'
      AND NOT (o.state <> 'failed' AND (o.unique_key IS NOT NULL OR o.resource_key IS NOT NULL))
      AND EXISTS (SELECT FROM settle.intent i WHERE i.id = o.intent AND i.closed_at + $2::interval <= clock_timestamp())
      AND NOT EXISTS (SELECT FROM settle."case" c WHERE c.operation = o.id AND c.closed_at IS NULL)
    RETURNING o.id
), journals AS (
    DELETE FROM settle.event e USING gone WHERE e.operation = gone.id
), cases AS (
    DELETE FROM settle."case" c USING gone WHERE c.operation = gone.id
)
SELECT count(*)::int FROM gone

-- name: erase
WITH gone AS (
    UPDATE settle.operation o SET {entombed}
    WHERE o.id = ANY ($1::uuid[]) AND o.flags & {purged} = 0
      AND EXISTS (SELECT FROM settle.intent i WHERE i.id = o.intent AND i.principal = $2::bytea)
    RETURNING o.id
), dropped AS (
    UPDATE settle."case" c SET proposal = NULL FROM gone WHERE c.operation = gone.id AND c.proposal IS NOT NULL
)
SELECT count(*)::int FROM gone

-- name: intent_named
SELECT i.closed_at FROM settle.intent i JOIN settle.tenant n ON n.id = i.tenant
WHERE i.id = $1::uuid AND n.name = $2::text FOR NO KEY UPDATE OF i

-- name: unsettled
SELECT EXISTS (SELECT FROM settle.operation o WHERE o.intent = $1::uuid AND (o.state < 'completed'
    OR EXISTS (SELECT FROM settle."case" c WHERE c.operation = o.id AND c.closed_at IS NULL)))

-- name: entomb_all
UPDATE settle.operation SET {entombed} WHERE intent = $1::uuid AND state >= 'completed'

-- name: drop_proposals
UPDATE settle."case" SET proposal = NULL WHERE operation IN (SELECT id FROM settle.operation WHERE intent = $1::uuid)

-- name: close_intent
UPDATE settle.intent SET closed_at = clock_timestamp(), subject = '', task = '', goal = '' WHERE id = $1::uuid
