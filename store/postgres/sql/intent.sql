-- An intent and its tenant, found or made: a batch. What is there already is
-- left alone and costs no write (R7).

-- name: propose_tenant
INSERT INTO settle.tenant (id, digest, name, key, created_at)
VALUES ($1::uuid, $2::bytea, $3::text, $4::bytea, clock_timestamp())
ON CONFLICT DO NOTHING

-- name: propose_intent
INSERT INTO settle.intent (id, digest, principal, tenant, subject, task, goal, key, version, created_at)
SELECT $1::uuid, $2::bytea, $9::bytea, n.id, $4::text, $5::text, $6::text, $7::bytea, $8::int, clock_timestamp()
FROM settle.tenant n WHERE n.digest = $3::bytea
ON CONFLICT DO NOTHING

-- name: find_intent
SELECT {intent} FROM settle.intent i JOIN settle.tenant n ON n.id = i.tenant WHERE i.digest = $1::bytea
