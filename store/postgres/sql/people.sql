-- What people work with: cases, refusals, what is known of tools.

-- The beginning of a list of cases, which ends in conditions, order and limit.
-- OFFSET 0 keeps the planner from beginning with the operations, of which there
-- are many more than cases.
-- name: cases
SELECT c.id, c.operation, c.tenant, c.tool, c.reason, c.incident, c.opened_at, c.closed_at, c.holder, c.held_at, c.proposal, {entry}
FROM settle."case" c JOIN LATERAL (SELECT * FROM settle.operation WHERE id = c.operation OFFSET 0) o ON true {with_intent}

-- name: case_of_tenant
c.tenant = (SELECT id FROM settle.tenant WHERE name =

-- name: audits
SELECT operation, at, kind, actor, detail FROM settle.audit WHERE operation = $1::uuid ORDER BY id

-- name: audits_of_none
SELECT operation, at, kind, actor, detail FROM settle.audit WHERE operation IS NULL ORDER BY id

-- Sorted, so that two processes that declare the same tools wait for one
-- another in one direction.
-- name: declare
INSERT INTO settle.tool (tool, deciders, guidance, result_schema)
SELECT k.tool, k.deciders, k.guidance, k.result_schema
FROM unnest($1::text[], $2::int[], $3::text[], $4::bytea[]) AS k(tool, deciders, guidance, result_schema)
ORDER BY k.tool
ON CONFLICT (tool) DO UPDATE SET deciders = excluded.deciders, guidance = excluded.guidance, result_schema = excluded.result_schema

-- name: declared
SELECT tool, deciders, guidance, result_schema FROM settle.tool WHERE tool = $1::text
