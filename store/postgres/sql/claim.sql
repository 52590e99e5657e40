-- Claims without a guard, hold, unique digest or resource: one statement, one
-- commit. Who came too late gets no row and reads it with a later statement,
-- since the snapshot of this one may be older than the winner's commit (R19).
-- The row stands for its first event: a row of its own in the journal, which
-- would say nothing else, took a seventh of a first execution.
--
-- statement_timestamp() is the clock as this statement found it, in a batch too,
-- and the statement waits for no lock that it then gets. It saves the join with
-- a reading of clock_timestamp(), some 5 % of a first execution.

-- name: claimed
INSERT INTO settle.operation (id, intent, tenant, slot, number, tool, class, contract, source, node, occurrence,
    parent, owner, run, batch, visibility, escalate, fingerprint, fields, arguments, call_id, trace,
    lease_until, due_at, moment, key_until, first_sent, created_at, tail_at, claimed_at, tail, claimed_by, reason, state, version, attempt, retention, flags)

-- name: claimed_values
$1::uuid, $2::uuid, $3::uuid, $4::uuid, $5::int, $6::text, $7::text::settle.class, $8::uuid, $9::text, $10::uuid, $11::int,
    $12::uuid, $13::uuid, $14::uuid, $15::uuid, $16::bigint, $17::bigint, $18::bytea, $19::bytea, $20::bytea, $21::bytea, $22::bytea,
    statement_timestamp() + $23::interval, statement_timestamp() + $23::interval, statement_timestamp() + $24::interval,
    statement_timestamp() + $25::interval, statement_timestamp(), statement_timestamp(), statement_timestamp(), statement_timestamp(),
    $26::bytea, $28::text, $27::text, 'running', 1, 1, $29::bigint, $30::smallint

-- name: claim
{claimed}
VALUES ({claimed_values})
ON CONFLICT (intent, slot, number) DO NOTHING
RETURNING tail_at

-- The first claim of a tool in an intent pins the tool's identity definition in
-- the same statement (R3). Where another claim pinned one after our snapshot,
-- no row comes back, and the claim is decided under the lock.
-- name: claim_first
WITH bound AS (
    INSERT INTO settle.contract (intent, tool, digest) VALUES ($2::uuid, $6::text, $8::uuid)
    ON CONFLICT DO NOTHING RETURNING digest
)
{claimed}
SELECT {claimed_values}
WHERE EXISTS (SELECT FROM bound)
   OR EXISTS (SELECT FROM settle.contract WHERE intent = $2::uuid AND tool = $6::text AND digest = $8::uuid)
ON CONFLICT (intent, slot, number) DO NOTHING
RETURNING tail_at
