-- Rows with the ledger's clock when they were read. State and class travel as
-- text, since a driver doesn't know our types.

-- name: operation
o.id, o.intent, o.tenant, o.slot, o.number, o.parent, o.tool, o.class::text, o.contract, o.source, o.node, o.occurrence,
    o.state::text, o.reason, o.version, o.tail, o.tail_at, o.attempt, o.doubts, o.owner, o.run, o.batch, o.told, o.granted, o.taken,
    o.lease_until, o.due_at, o.moment, o.visibility, o.key_until, o.escalate, o.checks, o.verdict,
    o.created_at, o.first_sent, o.unknown_since, o.settled_at, clock_timestamp(),
    o.fingerprint, o.fields, o.arguments, o.call_id, o.trace, o.resource, o.resource_digest, o.by_attribute,
    o.result, o.result_version, o.flags, o.unique_key, o.resource_key, coalesce(o.resource_seq, 0),
    o.retention

-- name: intent
i.id, i.digest, i.tenant, n.digest, n.name, i.principal, i.subject, i.task, i.goal, i.key, n.key, i.version, i.created_at, i.closed_at

-- name: entry
{operation}, {intent}

-- name: entries
settle.operation o {with_intent}

-- name: with_intent
JOIN settle.intent i ON i.id = o.intent JOIN settle.tenant n ON n.id = i.tenant

-- What is recorded in the place of claims.
-- name: slots
SELECT k.n::int, {operation}
FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS k(intent, slot, n)
JOIN settle.operation o ON o.intent = k.intent AND o.slot = k.slot
ORDER BY k.n, o.number

-- Who holds a claim (R30). The parameters are those of claim_guarded.
-- name: holding
SELECT {entry} FROM {entries}
WHERE o.intent = $1::uuid AND o.tool = $2::text AND o.slot <> $3::uuid
    AND ($4::uuid IS NULL OR o.batch IS DISTINCT FROM $4::uuid)
    AND (o.state < 'completed' OR (o.state = 'completed' AND o.run IS DISTINCT FROM $5::uuid AND o.id <> ALL ($6::uuid[])))
ORDER BY o.id

-- name: unique
SELECT {entry} FROM settle.single s JOIN settle.operation o ON o.id = s.operation {with_intent}
WHERE s.digest = $1::uuid AND o.state <> 'failed'

-- The writes on a resource that stand, and perhaps some that don't any more.
-- name: rivals
SELECT {entry} FROM settle.resource r JOIN settle.operation o ON o.id = ANY (r.standing) {with_intent}
WHERE r.key = $1::uuid ORDER BY o.resource_seq

-- name: rivals_of
SELECT {entry} FROM settle.operation own JOIN settle.resource r ON r.key = own.resource_key
JOIN settle.operation o ON o.id = ANY (r.standing) {with_intent}
WHERE own.id = $1::uuid ORDER BY o.resource_seq

-- The row that an Apply met in place of the one it had seen, and whether its
-- decision was taken before.
-- name: current
SELECT {operation}, EXISTS (SELECT FROM settle.event d WHERE d.operation = o.id AND d.decision = $2::uuid)
FROM settle.operation o WHERE o.id = $1::uuid

-- name: get
SELECT {entry} FROM {entries} WHERE o.id = $1::uuid AND n.name = $2::text

-- The beginnings of a list, which ends in conditions, order and limit. OFFSET 0
-- keeps the planner from walking all ids for the sake of the order.
-- name: list
SELECT {entry} FROM {entries}

-- name: list_intent
SELECT {entry} FROM (SELECT * FROM settle.operation WHERE intent = $1::uuid OFFSET 0) o {with_intent}

-- Steps are in the intent of the operation that they are steps of (R13).
-- name: list_parent
SELECT {entry} FROM (SELECT * FROM settle.operation
    WHERE intent = (SELECT intent FROM settle.operation WHERE id = $1::uuid) AND parent = $1::uuid OFFSET 0) o {with_intent}

-- name: of_tenant
o.tenant = (SELECT id FROM settle.tenant WHERE name =

-- The journal of an operation: the events that its row stands for, which have no
-- hash until somebody computes it, and the others.
-- name: events
SELECT id, 1, claimed_at, '>running', 'claimed', claimed_by, 1, '', NULL::uuid, NULL::bytea, NULL::bytea
FROM settle.operation WHERE id = $1::uuid AND claimed_at IS NOT NULL AND $2::int < 1
UNION ALL
SELECT id, 2, ended_at, 'running>completed', ended_kind, ended_by, 1, '', NULL, ended_body, NULL
FROM settle.operation WHERE id = $1::uuid AND ended_at IS NOT NULL AND $2::int < 2
UNION ALL
SELECT operation, seq, at, move::text, kind, actor, attempt, reason, decision, body, hash
FROM settle.event WHERE operation = $1::uuid AND seq > $2::int
ORDER BY 2
