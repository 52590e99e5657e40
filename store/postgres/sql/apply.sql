-- Changes of one operation: the row, its event and what hangs on the move, in
-- one statement. Id, version, state and tail guard the write (R20). The row's
-- tail_at is the event's instant, to the microsecond (R57).

-- What a caller can't compute from the row that it saw: a renewal or a take
-- moves these without a new version.
-- name: instants
tail_at, created_at, lease_until, due_at, moment, key_until, first_sent, unknown_since, settled_at, flags

-- name: seen
id = $1::uuid AND version = $2::int AND state = $3::text::settle.state AND tail = $4::bytea

-- The end of a first execution: from running to completed by the first attempt,
-- with nothing in doubt. The row stands for its event as it does for the claim's.
-- Of the instants only the event's own can't be computed by who saw the claim.
-- Every other change is a move or a start.
-- name: settle
UPDATE settle.operation SET state = 'completed', version = 2, tail = $3::bytea,
    tail_at = statement_timestamp(), settled_at = statement_timestamp(), moment = statement_timestamp() + $4::interval,
    lease_until = NULL, due_at = NULL,
    resource = $5::bytea, resource_digest = $6::uuid, result = CASE WHEN {kept} THEN $7::bytea END, result_version = $8::int,
    flags = flags | $9::smallint, trace = CASE WHEN {kept} THEN coalesce($10::bytea, trace) END,
    ended_at = statement_timestamp(), ended_kind = $11::text, ended_by = $12::text, ended_body = $13::bytea
WHERE id = $1::uuid AND version = 1 AND state = 'running' AND tail = $2::bytea
RETURNING tail_at, flags

-- name: move
WITH moved AS (
    {moving}
    RETURNING id, tenant, tool, {instants}
), {journaled}, {cased}
SELECT {instants} FROM moved

-- A move out of a settled state, or one that puts a settled write in doubt, under
-- the locks of resource and unique digest (a batch of lock_resource, lock_single
-- and this): the operation stands again on its resource (R31), and where it isn't
-- settled any more it holds its digest again unless another one does (R14).
-- name: reopen
WITH moved AS (
    {moving}
      AND ($5::text::settle.state >= 'completed'
        OR NOT EXISTS (SELECT FROM settle.single s JOIN settle.operation other ON other.id = s.operation
          WHERE s.digest = o.unique_key AND other.id <> o.id AND other.state <> 'failed'))
    RETURNING id, tenant, tool, resource_key, unique_key, {instants}
), {journaled}, {cased}, stands AS (
    UPDATE settle.resource r SET standing = m.id || r.standing FROM moved m WHERE r.key = m.resource_key AND m.id <> ALL (r.standing)
), held AS (
    UPDATE settle.single s SET operation = m.id FROM moved m
    WHERE s.digest = m.unique_key AND $5::text::settle.state < 'completed'
)
SELECT {instants} FROM moved

-- name: moving
UPDATE settle.operation o SET
        state = $5::text::settle.state, {counts},
        moment = {moment},
        lease_until = CASE WHEN $5::text = 'running' THEN lease_until END,
        due_at = CASE WHEN $23::boolean THEN greatest(t.now + $22::interval, {moment}) ELSE t.now + $22::interval END,
        unknown_since = CASE
            WHEN $5::text = 'unknown' AND (unknown_since IS NULL OR $3::text = 'manual') THEN t.now
            WHEN $5::text = 'retryable' OR $5::text::settle.state >= 'completed' THEN NULL
            ELSE unknown_since END,
        settled_at = CASE
            WHEN $5::text::settle.state < 'completed' THEN NULL
            WHEN $3::text::settle.state < 'completed' THEN t.now
            ELSE settled_at END,
        by_attribute = CASE WHEN $24::boolean THEN $25::boolean ELSE by_attribute END,
        resource = CASE WHEN $24::boolean THEN $26::bytea ELSE resource END,
        resource_digest = CASE WHEN $24::boolean THEN $27::uuid ELSE resource_digest END,
        result = CASE WHEN NOT {kept} THEN NULL WHEN $24::boolean THEN $28::bytea ELSE result END,
        result_version = CASE WHEN $24::boolean THEN $29::int ELSE result_version END,
        flags = flags | $30::smallint, trace = CASE WHEN {kept} THEN coalesce($32::bytea, trace) END,
        taken = CASE WHEN $33::text IS NOT NULL THEN $33::text
            WHEN {leaves} THEN ''
            ELSE taken END
    FROM {clock} t
    WHERE {seen} AND {undecided} AND {unerased}
      AND NOT ($25::boolean AND EXISTS (SELECT FROM settle.operation other
          WHERE other.resource_digest = $27::uuid AND other.tool = o.tool AND other.state = 'completed' AND other.id <> o.id))

-- What hangs on a move: the case of the state that it leaves or enters (R39), an
-- incident, and the resource that attribute evidence settles it with (R34).
-- name: cased
filed AS (
    UPDATE settle."case" c SET
        closed_at = CASE WHEN {closes} THEN m.tail_at END,
        holder = coalesce($33::text, holder), held_at = CASE WHEN $33::text IS NOT NULL THEN m.tail_at ELSE held_at END,
        proposal = CASE WHEN {closes} AND m.flags & {purged} <> 0 THEN NULL WHEN $34::boolean THEN $35::bytea ELSE proposal END
    FROM moved m
    WHERE c.operation = m.id AND c.closed_at IS NULL AND ($36::boolean OR $34::boolean OR $33::text IS NOT NULL OR {leaves})
), opened AS (
    INSERT INTO settle."case" (operation, tenant, tool, reason, incident, opened_at)
    SELECT id, tenant, tool, $6::text, false, tail_at FROM moved
     WHERE $5::text IN ('manual', 'awaiting_approval') AND $3::text <> $5::text
    UNION ALL
    SELECT id, tenant, tool, $31::text, true, tail_at FROM moved WHERE $31::text <> ''
), evidence AS (
    INSERT INTO settle.attribute (digest, tool, operation)
    SELECT $27::uuid, tool, id FROM moved WHERE $25::boolean AND $27::uuid IS NOT NULL
)

-- The change leaves a state in which a person is needed, and closes its case.
-- name: leaves
($3::text IN ('manual', 'awaiting_approval') AND $3::text <> $5::text)

-- name: closes
(CASE WHEN c.incident THEN $36::boolean ELSE {leaves} END)

-- A tombstone takes nothing in any more, and keeps a proposal only for as long as
-- somebody can confirm it (R51).
-- name: kept
flags & {purged} = 0

-- What every change of the general kind takes.
-- name: counts
version = version + 1, reason = $6::text, tail = $7::bytea, tail_at = t.now,
        doubts = $10::int, told = $11::boolean, granted = $12::boolean, visibility = $16::bigint,
        checks = checks + CASE WHEN $13::boolean THEN 1 ELSE 0 END,
        verdict = CASE WHEN $13::boolean THEN $14::text ELSE verdict END

-- R21, as store.Next has it: a longer VisibilityDelay moves the moment back; a
-- return ends it, or moves it back where others are in doubt.
-- name: moment
CASE WHEN $18::interval IS NULL THEN moment + $17::interval
                 WHEN $19::boolean THEN t.now + $18::interval
                 ELSE greatest(moment + $17::interval, t.now + $18::interval) END

-- What is proposed was read before an erasure, or after it (R52).
-- name: unerased
NOT ($34::boolean AND flags & {purged} <> $37::smallint & {purged})

-- A decision is recorded once, whatever the version (R41). No index is needed:
-- who writes the next event has seen all before it.
-- name: undecided
($8::uuid IS NULL OR NOT EXISTS (SELECT FROM settle.event d WHERE d.operation = $1::uuid AND d.decision = $8::uuid))

-- name: journaled
journaled AS (
    INSERT INTO settle.event (operation, seq, attempt, at, move, kind, actor, reason, hash, decision, body)
    SELECT id, $2::int + 1, $9::int, tail_at, ($3::text || '>' || $5::text)::settle.move, $20::text, $15::text, $6::text, $7::bytea,
        $8::uuid, $21::bytea FROM moved
)

-- An attempt begins under the lock of its resource, if it has one (R31): a
-- batch of this statement, start and rivals_of.
-- name: lock_resource
SELECT FROM settle.operation o JOIN settle.resource r ON r.key = o.resource_key WHERE o.id = $1::uuid FOR NO KEY UPDATE OF r

-- name: lock_single
SELECT FROM settle.operation o JOIN settle.single s ON s.digest = o.unique_key WHERE o.id = $1::uuid FOR NO KEY UPDATE OF s

-- The row is locked before the clock is read, so that a wait for the lock takes
-- nothing from the lease (R22).
-- name: start
WITH was AS MATERIALIZED (
    SELECT id FROM settle.operation WHERE {seen} FOR NO KEY UPDATE
), t AS MATERIALIZED (
    SELECT clock_timestamp() AS now FROM was
), moved AS (
    UPDATE settle.operation o SET
        state = $5::text::settle.state, {counts},
        moment = greatest({moment} + $22::interval, t.now + $24::interval),
        lease_until = t.now + $23::interval, due_at = t.now + $23::interval, first_sent = coalesce(first_sent, t.now),
        attempt = attempt + 1, owner = $25::uuid, run = $26::uuid, batch = $27::uuid, flags = flags | $30::smallint,
        call_id = CASE WHEN {kept} THEN $28::bytea END, trace = CASE WHEN {kept} THEN $29::bytea END
    FROM t
    WHERE {seen} AND {undecided}
      AND NOT EXISTS (SELECT FROM settle.resource r JOIN settle.operation n ON n.id = ANY (r.standing)
          WHERE r.key = o.resource_key
            AND CASE WHEN n.resource_seq > o.resource_seq THEN n.state <> 'failed'
                WHEN n.resource_seq < o.resource_seq THEN
                    (n.state = 'running' OR n.doubts > 0) AND n.moment > t.now END)
    RETURNING id, {instants}
), {journaled}
SELECT {instants} FROM moved
