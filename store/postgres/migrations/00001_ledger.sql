-- The names of classes, states and moves are those of the package store.
CREATE TYPE settle.class AS ENUM ('unsafe', 'read', 'idempotent', 'keyed', 'composite', 'transactional');

-- Settled states come last, so that state < 'completed' says "unsettled".
CREATE TYPE settle.state AS ENUM ('awaiting_approval', 'running', 'retryable', 'unknown', 'manual',
    'completed', 'failed', 'superseded', 'abandoned');

-- R20 in the database: nothing moves without its event, and a move that is not
-- here can't be journaled. A CHECK over the same pairs took a third of the rate.
CREATE TYPE settle.move AS ENUM (
    '>running', '>awaiting_approval', '>retryable',
    'awaiting_approval>awaiting_approval', 'awaiting_approval>retryable', 'awaiting_approval>failed',
    'awaiting_approval>abandoned',
    'running>running', 'running>completed', 'running>failed', 'running>retryable', 'running>unknown',
    'running>manual', 'running>superseded',
    'retryable>retryable', 'retryable>running', 'retryable>awaiting_approval', 'retryable>completed',
    'retryable>failed', 'retryable>manual', 'retryable>superseded', 'retryable>abandoned',
    'unknown>unknown', 'unknown>running', 'unknown>completed', 'unknown>failed', 'unknown>retryable',
    'unknown>manual', 'unknown>superseded',
    'manual>manual', 'manual>completed', 'manual>failed', 'manual>retryable', 'manual>unknown',
    'manual>superseded', 'manual>abandoned',
    'completed>completed',
    'failed>failed', 'failed>manual',
    'superseded>superseded',
    'abandoned>abandoned', 'abandoned>manual');

CREATE TABLE settle.tenant (
    id         uuid PRIMARY KEY,
    digest     bytea NOT NULL UNIQUE,
    name       text NOT NULL,
    key        bytea NOT NULL,
    created_at timestamptz NOT NULL
);

-- A hash index holds names of any length.
CREATE INDEX tenant_name ON settle.tenant USING hash (name);

CREATE TABLE settle.intent (
    id         uuid PRIMARY KEY,
    digest     bytea NOT NULL UNIQUE,
    principal  bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex'),
    tenant     uuid NOT NULL REFERENCES settle.tenant,
    subject    text NOT NULL,
    task       text NOT NULL,
    goal       text NOT NULL,
    key        bytea NOT NULL,
    version    integer NOT NULL,
    created_at timestamptz NOT NULL,
    closed_at  timestamptz
);

CREATE INDEX intent_principal ON settle.intent (principal);

-- The identity definition that the first claim of a tool pinned in an intent
-- (R3). The row is the lock for the hold (R30) as well.
CREATE TABLE settle.contract (
    intent uuid NOT NULL,
    tool   text COLLATE "C" NOT NULL,
    digest uuid NOT NULL,
    PRIMARY KEY (intent, tool)
);

-- Numbers the idempotent writes on a resource and is their lock (R31). Standing
-- lists every write that is unsettled or still in doubt, the newest that is
-- settled for good with an effect, and what is above that and hasn't failed. What
-- it lists beside them, and what was deleted, the next claim leaves out. So a
-- long history costs nothing, and operation needs no index for the few that
-- write on resources.
CREATE TABLE settle.resource (
    key      uuid PRIMARY KEY,
    seq      bigint NOT NULL,
    standing uuid[] NOT NULL
);

-- The operation that holds a unique digest, unless it has failed, and the lock
-- to take its place (R14). Purging leaves it alone.
CREATE TABLE settle.single (
    digest    uuid PRIMARY KEY,
    operation uuid
);

-- No foreign keys: each would lock a row of the other table in every claim.
-- What comes from outside without our having checked it (call_id, resource) is
-- bytea, so that recording an effect never fails over its characters. Durations
-- are in nanoseconds.
CREATE TABLE settle.operation (
    created_at      timestamptz NOT NULL,
    tail_at         timestamptz NOT NULL,
    moment          timestamptz NOT NULL,
    visibility      bigint NOT NULL,
    escalate        bigint NOT NULL,
    retention       bigint NOT NULL DEFAULT 0,
    id              uuid NOT NULL,
    intent          uuid NOT NULL,
    tenant          uuid NOT NULL,
    slot            uuid NOT NULL,
    node            uuid NOT NULL,
    contract        uuid NOT NULL,
    number          integer NOT NULL,
    occurrence      integer NOT NULL,
    version         integer NOT NULL,
    attempt         integer NOT NULL,
    doubts          integer NOT NULL DEFAULT 0,
    checks          integer NOT NULL DEFAULT 0,
    result_version  integer NOT NULL DEFAULT 0,
    class           settle.class NOT NULL,
    state           settle.state NOT NULL,
    flags           smallint NOT NULL DEFAULT 0,
    told            boolean NOT NULL DEFAULT false,
    granted         boolean NOT NULL DEFAULT false,
    by_attribute    boolean NOT NULL DEFAULT false,
    source          text NOT NULL,
    tool            text COLLATE "C" NOT NULL,
    reason          text NOT NULL,
    verdict         text NOT NULL DEFAULT '',
    taken           text NOT NULL DEFAULT '',
    tail            bytea NOT NULL,
    fingerprint     bytea NOT NULL,
    call_id         bytea,
    lease_until     timestamptz,
    due_at          timestamptz,
    key_until       timestamptz,
    first_sent      timestamptz,
    unknown_since   timestamptz,
    settled_at      timestamptz,
    owner           uuid,
    run             uuid,
    batch           uuid,
    parent          uuid,
    unique_key      uuid,
    resource_key    uuid,
    resource_seq    bigint,
    resource_digest uuid,
    trace           bytea,
    resource        bytea,
    fields          bytea,
    arguments       bytea,
    result          bytea,
    -- R19: this constraint decides who executes. It lists an intent as well.
    PRIMARY KEY (intent, slot, number)
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX operation_id ON settle.operation (id);

-- Each pair of tool and tenant is found with one step from the one before (R36).
CREATE INDEX operation_due ON settle.operation (tool, tenant, due_at, id) WHERE due_at IS NOT NULL;

-- Attribute evidence asks whether a resource settles another operation (R34).
CREATE INDEX operation_outcome ON settle.operation (resource_digest) WHERE resource_digest IS NOT NULL;

-- Which operation a resource settled by attribute evidence: one at most (R34).
-- It also holds what operations that are deleted were completed with.
CREATE TABLE settle.attribute (
    digest    uuid NOT NULL,
    tool      text COLLATE "C" NOT NULL,
    operation uuid NOT NULL,
    PRIMARY KEY (digest, tool)
);

CREATE TABLE settle.event (
    operation uuid NOT NULL,
    seq       integer NOT NULL,
    attempt   integer NOT NULL,
    at        timestamptz NOT NULL,
    move      settle.move NOT NULL,
    kind      text NOT NULL,
    actor     text NOT NULL,
    reason    text NOT NULL,
    hash      bytea NOT NULL,
    decision  uuid,
    body      bytea,
    PRIMARY KEY (operation, seq)
);

CREATE TABLE settle."case" (
    id        uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    operation uuid NOT NULL,
    tenant    uuid NOT NULL,
    tool      text NOT NULL,
    reason    text NOT NULL,
    incident  boolean NOT NULL,
    opened_at timestamptz NOT NULL,
    closed_at timestamptz,
    holder    text NOT NULL DEFAULT '',
    held_at   timestamptz,
    proposal  bytea
);

CREATE INDEX case_operation ON settle."case" (operation);

CREATE INDEX case_list ON settle."case" (opened_at, id) WHERE closed_at IS NULL;

-- R39: exactly one open case to an operation that waits for a person.
CREATE UNIQUE INDEX case_open ON settle."case" (operation) WHERE closed_at IS NULL AND NOT incident;

-- What people without a tool's code need to know of it.
CREATE TABLE settle.tool (
    tool          text COLLATE "C" PRIMARY KEY,
    deciders      integer NOT NULL,
    guidance      text NOT NULL,
    result_schema bytea
);

-- Plain rows on what changed nothing (R57).
CREATE TABLE settle.audit (
    id        bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    operation uuid,
    at        timestamptz NOT NULL,
    kind      text NOT NULL,
    actor     text NOT NULL,
    detail    text NOT NULL
);

CREATE INDEX audit_operation ON settle.audit (operation) WHERE operation IS NOT NULL;
