-- Claims that are decided under locks: a batch in one implicit transaction, one
-- round trip. In READ COMMITTED each statement has a snapshot of its own, so
-- what a claim decides by is newer than the locks that it waited for. Where the
-- row is there already nothing is locked, so that a replay writes nothing.

-- name: lock_limit
SELECT set_config('lock_timeout', {limit_ms}, true)

-- Statements of several callers that travel together meet locks that are held for
-- a moment only; behind any other one they go on alone.
-- name: lock_briefly
SELECT set_config('lock_timeout', {brief_ms}, true)

-- name: bind
INSERT INTO settle.contract (intent, tool, digest)
SELECT k.intent, k.tool, k.contract
FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::uuid[], $5::int[]) WITH ORDINALITY AS k(intent, tool, contract, slot, number, n)
WHERE {unclaimed}
ORDER BY k.intent, k.tool, k.n
ON CONFLICT DO NOTHING

-- name: unclaimed
NOT EXISTS (SELECT FROM settle.operation o WHERE o.intent = k.intent AND o.slot = k.slot AND o.number >= k.number)

-- name: lock_contracts
SELECT FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::int[]) AS k(intent, tool, slot, number)
JOIN settle.contract c ON c.intent = k.intent AND c.tool = k.tool
WHERE {unclaimed}
ORDER BY c.intent, c.tool
FOR NO KEY UPDATE OF c

-- name: number_resources
INSERT INTO settle.resource (key, seq, standing)
SELECT k.resource, 0, '{}' FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::int[]) AS k(resource, intent, slot, number)
WHERE {unclaimed}
ORDER BY k.resource
ON CONFLICT DO NOTHING

-- name: lock_resources
SELECT FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::int[]) AS k(resource, intent, slot, number)
JOIN settle.resource r ON r.key = k.resource
WHERE {unclaimed}
ORDER BY r.key
FOR NO KEY UPDATE OF r

-- name: enter_singles
INSERT INTO settle.single (digest)
SELECT k.digest FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::int[]) AS k(digest, intent, slot, number)
WHERE {unclaimed}
ORDER BY k.digest
ON CONFLICT DO NOTHING

-- name: lock_singles
SELECT FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::int[]) AS k(digest, intent, slot, number)
JOIN settle.single s ON s.digest = k.digest
WHERE {unclaimed}
ORDER BY s.digest
FOR NO KEY UPDATE OF s

-- A guard that another transaction moves on is waited for, and one that is held
-- can't move on before the claim is committed (R9, R10).
-- name: lock_guards
SELECT FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::int[]) AS k(guard, intent, slot, number)
JOIN settle.operation g ON g.id = k.guard
WHERE {unclaimed}
ORDER BY g.id
FOR SHARE OF g

-- The order of refusals is that of store.Refusal's documentation; -1 stands for
-- a row that is there already.
-- name: claim_guarded
WITH t AS MATERIALIZED (SELECT clock_timestamp() AS now),
why AS MATERIALIZED (
    SELECT CASE
        WHEN EXISTS (SELECT FROM settle.operation WHERE intent = $2::uuid AND slot = $4::uuid AND number >= $5::int) THEN -1
        WHEN EXISTS (SELECT FROM unnest($33::uuid[], $34::int[]) AS g(id, version)
            WHERE NOT EXISTS (SELECT FROM settle.operation o WHERE o.id = g.id AND o.version = g.version)) THEN 1
        WHEN EXISTS (SELECT FROM settle.contract WHERE intent = $2::uuid AND tool = $6::text AND digest <> $8::uuid) THEN 3
        WHEN $35::boolean AND EXISTS (SELECT FROM settle.operation o WHERE {holds}) THEN 2
        WHEN EXISTS (SELECT FROM settle.single s JOIN settle.operation o ON o.id = s.operation
            WHERE s.digest = $31::uuid AND o.state <> 'failed') THEN 4
        ELSE 0 END AS refused,
    -- R31: a lower write of which an attempt can still take effect, settled or not.
    $29::text = 'running' AND EXISTS (SELECT FROM t, settle.resource r JOIN settle.operation o ON o.id = ANY (r.standing)
        WHERE r.key = $32::uuid AND (o.state = 'running' OR o.doubts > 0) AND o.moment > t.now) AS waits
), begins AS (
    SELECT CASE WHEN waits THEN 'retryable' ELSE $29::text END AS state,
        CASE WHEN waits THEN $37::bytea ELSE $26::bytea END AS tail,
        $29::text = 'running' AND NOT waits AS runs
    FROM why WHERE refused = 0
), numbered AS (
    UPDATE settle.resource r SET seq = seq + 1, standing = $1::uuid || {still_standing}
    FROM begins WHERE key = $32::uuid RETURNING seq
), held AS (
    UPDATE settle.single SET operation = $1::uuid FROM begins WHERE digest = $31::uuid
), won AS (
    INSERT INTO settle.operation (id, intent, tenant, slot, number, tool, class, contract, source, node, occurrence,
        parent, owner, run, batch, visibility, escalate, fingerprint, fields, arguments, call_id, trace,
        lease_until, due_at, moment, key_until, first_sent, created_at, tail_at, tail, reason, state, version, attempt,
        unique_key, resource_key, resource_seq, retention, flags)
    SELECT $1::uuid, $2::uuid, $3::uuid, $4::uuid, $5::int, $6::text, $7::text::settle.class, $8::uuid, $9::text, $10::uuid, $11::int,
        $12::uuid, $13::uuid, $14::uuid, $15::uuid, $16::bigint, $17::bigint, $18::bytea, $19::bytea, $20::bytea, $21::bytea, $22::bytea,
        CASE WHEN b.runs THEN t.now + $23::interval END,
        t.now + CASE WHEN b.runs THEN $23::interval ELSE $30::interval END,
        CASE WHEN b.runs THEN t.now + $24::interval ELSE t.now END,
        t.now + $25::interval, CASE WHEN b.runs THEN t.now END, t.now, t.now,
        b.tail, $27::text, b.state::settle.state, 1, b.runs::int,
        $31::uuid, $32::uuid, (SELECT seq FROM numbered), $38::bigint, $39::smallint
    FROM t, begins b
    ON CONFLICT (intent, slot, number) DO NOTHING
    RETURNING id, tenant, tool, reason, state, tail, tail_at, attempt, resource_seq
), journaled AS (
    INSERT INTO settle.event (operation, seq, attempt, at, move, kind, actor, reason, hash)
    SELECT id, 1, attempt, tail_at, ('>' || state)::settle.move, 'claimed', $28::text, reason, tail FROM won
), opened AS (
    INSERT INTO settle."case" (operation, tenant, tool, reason, incident, opened_at)
    SELECT id, tenant, tool, reason, false, tail_at FROM won WHERE state = 'awaiting_approval'
)
SELECT why.refused, won.tail_at, coalesce(won.state::text, ''), coalesce(won.resource_seq, 0) FROM why LEFT JOIN won ON true

-- What a resource lists on: the writes that are unsettled, those of which an
-- attempt can still take effect, and what a failure of all above it would bring
-- back. An abandoned write can come back and fail, too. What was deleted is left out.
-- name: still_standing
ARRAY (
        SELECT o.id FROM settle.operation o
        WHERE o.id = ANY (r.standing) AND ((o.doubts > 0 AND o.moment > clock_timestamp())
            OR o.state <> 'failed' AND (o.state < 'completed' OR o.resource_seq >= coalesce((
                SELECT max(n.resource_seq) FROM settle.operation n
                WHERE n.id = ANY (r.standing) AND n.state IN ('completed', 'superseded')), 0))))

-- R30, as store.Operation.Holds.
-- name: holds
o.intent = $2::uuid AND o.tool = $6::text AND o.slot <> $4::uuid
    AND ($15::uuid IS NULL OR o.batch IS DISTINCT FROM $15::uuid)
    AND (o.state < 'completed' OR (o.state = 'completed' AND o.run IS DISTINCT FROM $14::uuid AND o.id <> ALL ($36::uuid[])))

-- Takes back what bind pinned in this transaction for claims that were refused.
-- name: unbind
DELETE FROM settle.contract c USING unnest($1::uuid[], $2::text[]) AS k(intent, tool)
WHERE c.intent = k.intent AND c.tool = k.tool AND c.xmin = pg_current_xact_id_if_assigned()::xid
  AND NOT EXISTS (SELECT FROM settle.operation o WHERE o.intent = c.intent AND o.tool = c.tool)
