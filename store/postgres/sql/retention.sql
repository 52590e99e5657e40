-- Forgetting: purges, erasure, closing.

-- The page of a purge is priced as if each of its rows were of another large
-- intent, which is more than what the server compiles a statement for. It would
-- take longer to compile than to run, page for page.
-- name: uncompiled
SELECT set_config('jit', 'off', true)

-- One page of a purge: what is to be done to each row, and the version at which
-- it was judged. The open steps of an intent are read once for a page, since no
-- index finds the steps of an operation; OFFSET 0 keeps the planner from
-- answering a question on one row by reading a table from end to end.
-- name: purge_page
WITH page AS MATERIALIZED (
    SELECT id, intent, version, parent, {departs} AS departs, {retired} AS retired
    FROM settle.operation o WHERE id > $1::uuid ORDER BY id LIMIT $2::int
), steps AS MATERIALIZED (
    SELECT k.parent FROM (SELECT DISTINCT intent FROM page WHERE departs OR retired) i,
        LATERAL (SELECT parent, state FROM settle.operation WHERE intent = i.intent OFFSET 0) k
    WHERE k.parent IS NOT NULL AND k.state < 'completed'
)
SELECT o.id, o.version, departs, (departs OR retired) AND NOT {hangs} FROM page o ORDER BY o.id

-- What is deleted: all of a closed intent, once the grace is over, but what has
-- to stand in the way of others for ever: the one operation that Unique admits
-- (R14), and the writes on a resource, without which an older one that they
-- overtook would start again (R31).
-- name: departs
(o.state >= 'completed' AND (o.state = 'failed' OR (o.unique_key IS NULL AND o.resource_key IS NULL))
    AND EXISTS (SELECT FROM settle.intent i WHERE i.id = o.intent AND i.closed_at + {grace} <= statement_timestamp() OFFSET 0))

-- What loses its payload.
-- name: retired
(o.state >= 'completed' AND o.flags & {purged} = 0 AND o.retention > 0
    AND o.settled_at + o.retention / 1000 * interval '1 microsecond' <= statement_timestamp())

-- What something open keeps: an unsettled relative or an incident (R51).
-- name: hangs
(EXISTS (SELECT FROM settle.operation p WHERE p.id = o.parent AND p.state < 'completed' OFFSET 0)
    OR EXISTS (SELECT FROM settle."case" c WHERE c.operation = o.id AND c.closed_at IS NULL OFFSET 0)
    OR o.id IN (SELECT parent FROM steps))

-- A row that moved on since it was judged is left alone: whatever opens a case
-- makes a version, and if the row were deleted, so would be what is known of the
-- case. What another transaction has is stepped over; the next purge meets it.
-- name: purge
WITH due AS MATERIALIZED (
    SELECT o.id, judged.departs
    FROM unnest($1::uuid[], $2::int[], $3::boolean[]) AS judged(id, version, departs)
    JOIN settle.operation o ON o.id = judged.id AND o.version = judged.version
    WHERE judged.departs OR o.flags & {purged} = 0
    ORDER BY o.id FOR UPDATE OF o SKIP LOCKED
), deleted AS (
    DELETE FROM settle.operation o USING due WHERE o.id = due.id AND due.departs
    RETURNING o.id, o.tool, o.state, o.resource_digest
), journals AS (
    DELETE FROM settle.event e USING due WHERE e.operation = due.id AND due.departs
), cases AS (
    DELETE FROM settle."case" c USING due WHERE c.operation = due.id AND due.departs
), resources AS (
    -- What completed them settles no other operation all the same (R34).
    INSERT INTO settle.attribute (digest, tool, operation)
    SELECT resource_digest, tool, id FROM deleted WHERE state = 'completed' AND resource_digest IS NOT NULL
    ORDER BY resource_digest, tool ON CONFLICT DO NOTHING
), entombed AS (
    UPDATE settle.operation o SET {bare} FROM due WHERE o.id = due.id AND NOT due.departs
), proposals AS (
    UPDATE settle."case" c SET proposal = NULL FROM due WHERE c.operation = due.id AND NOT due.departs AND c.proposal IS NOT NULL
), {emptied}
SELECT count(*)::int FROM due

-- What is still to be sent says no more than that it happened.
-- name: emptied
outgoing AS (UPDATE settle.outbox x SET data = NULL FROM due WHERE x.operation = due.id AND x.data IS NOT NULL)

-- What stays of a row has to be known for ever (R51).
-- name: bare
flags = flags | {purged}, arguments = NULL, result = NULL, fields = NULL, trace = NULL, call_id = NULL,
    fingerprint = '\x0000000000000000000000000000000000000000000000000000000000000000'

-- name: erase_page
SELECT o.id, o.version, false, o.flags & {purged} = 0 AND EXISTS (SELECT FROM settle.intent i WHERE i.id = o.intent AND i.principal = $3::bytea OFFSET 0)
FROM settle.operation o WHERE o.id > $1::uuid ORDER BY o.id LIMIT $2::int

-- Erasure steps over nothing: it waits for who has a row, in the order of ids
-- like everybody who has several. It rewrites all cases of a row, since who had
-- the row may have left a proposal that this statement doesn't see yet.
-- name: erase
WITH due AS MATERIALIZED (
    SELECT o.id FROM settle.operation o WHERE o.id = ANY ($1::uuid[]) AND o.flags & {purged} = 0
    ORDER BY o.id FOR NO KEY UPDATE
), entombed AS (
    UPDATE settle.operation o SET {bare} FROM due WHERE o.id = due.id
), proposals AS (
    UPDATE settle."case" c SET proposal = NULL FROM due WHERE c.operation = due.id
), {emptied}
SELECT count(*)::int FROM due

-- Closing: a transaction. Rows are locked in the order of their ids before they
-- are judged, so that nothing is reopened in between.
-- name: intent_named
SELECT i.closed_at FROM settle.intent i JOIN settle.tenant n ON n.id = i.tenant
WHERE i.id = $1::uuid AND n.name = $2::text FOR NO KEY UPDATE OF i

-- name: unsettled
SELECT EXISTS (SELECT FROM settle.operation o WHERE o.intent = $1::uuid AND (o.state < 'completed'
    OR EXISTS (SELECT FROM settle."case" c WHERE c.operation = o.id AND c.closed_at IS NULL OFFSET 0)))

-- name: lock_own
SELECT FROM settle.operation WHERE intent = $1::uuid ORDER BY id FOR NO KEY UPDATE

-- name: entomb_all
UPDATE settle.operation SET {bare} WHERE intent = $1::uuid AND flags & {purged} = 0

-- name: drop_proposals
UPDATE settle."case" SET proposal = NULL
WHERE operation IN (SELECT id FROM settle.operation WHERE intent = $1::uuid) AND proposal IS NOT NULL

-- name: empty_outbox
UPDATE settle.outbox SET data = NULL WHERE intent = $1::uuid AND data IS NOT NULL

-- name: close_intent
UPDATE settle.intent SET closed_at = clock_timestamp(), subject = '', task = '', goal = '' WHERE id = $1::uuid
