-- The names of classes, states and moves are those of the package store.
CREATE TYPE settle.class AS ENUM ('unsafe', 'read', 'idempotent', 'keyed', 'composite', 'transactional');

-- Settled states come last, so that state < 'completed' says "unsettled".
CREATE TYPE settle.state AS ENUM ('awaiting_approval', 'running', 'retryable', 'unknown', 'manual',
    'completed', 'failed', 'superseded', 'abandoned');

-- R20 in the database: nothing moves without its event, and a move that is not
-- here can't be journaled. A CHECK over the same pairs took a third of the rate.
-- The two moves of a first execution are those that the statements name.
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
--
-- What a claim writes for good stands before what an outcome changes: of a new
-- version of a row the log holds what lies between the first difference and the
-- last.
--
-- claimed_at and claimed_by, and ended_at to ended_body, are the first two events
-- of an operation that was claimed as running and completed by its first attempt,
-- where table event doesn't have them (R57). Nothing changes them afterwards, and
-- what else the events say is fixed.
CREATE TABLE settle.operation (
    id              uuid NOT NULL,
    intent          uuid NOT NULL,
    slot            uuid NOT NULL,
    tenant          uuid NOT NULL,
    node            uuid NOT NULL,
    contract        uuid NOT NULL,
    created_at      timestamptz NOT NULL,
    visibility      bigint NOT NULL,
    escalate        bigint NOT NULL,
    retention       bigint NOT NULL DEFAULT 0,
    number          integer NOT NULL,
    occurrence      integer NOT NULL,
    class           settle.class NOT NULL,
    source          text NOT NULL,
    tool            text COLLATE "C" NOT NULL,
    fingerprint     bytea NOT NULL,
    owner           uuid,
    run             uuid,
    batch           uuid,
    parent          uuid,
    unique_key      uuid,
    resource_key    uuid,
    resource_seq    bigint,
    key_until       timestamptz,
    first_sent      timestamptz,
    call_id         bytea,
    trace           bytea,
    fields          bytea,
    arguments       bytea,
    claimed_at      timestamptz,
    claimed_by      text,
    attempt         integer NOT NULL,
    doubts          integer NOT NULL DEFAULT 0,
    checks          integer NOT NULL DEFAULT 0,
    told            boolean NOT NULL DEFAULT false,
    granted         boolean NOT NULL DEFAULT false,
    by_attribute    boolean NOT NULL DEFAULT false,
    flags           smallint NOT NULL DEFAULT 0,
    verdict         text NOT NULL DEFAULT '',
    taken           text NOT NULL DEFAULT '',
    state           settle.state NOT NULL,
    version         integer NOT NULL,
    tail            bytea NOT NULL,
    tail_at         timestamptz NOT NULL,
    moment          timestamptz NOT NULL,
    lease_until     timestamptz,
    due_at          timestamptz,
    unknown_since   timestamptz,
    settled_at      timestamptz,
    reason          text NOT NULL,
    result_version  integer NOT NULL DEFAULT 0,
    resource_digest uuid,
    resource        bytea,
    result          bytea,
    ended_at        timestamptz,
    ended_kind      text,
    ended_by        text,
    ended_body      bytea,
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

-- The journal, but for the events that rows of operation stand for.
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

-- The queue, and that of a tenant, of a tool and of an operator: the first page of
-- each costs what is on it, however many other cases are older.
CREATE INDEX case_list ON settle."case" (opened_at, id) WHERE closed_at IS NULL;

CREATE INDEX case_tenant ON settle."case" (tenant, opened_at, id) WHERE closed_at IS NULL;

CREATE INDEX case_tool ON settle."case" (tool, opened_at, id) WHERE closed_at IS NULL;

CREATE INDEX case_holder ON settle."case" (holder, opened_at, id) WHERE closed_at IS NULL AND holder <> '';

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

-- Events on their way to others (R54): written with the change that they tell of,
-- deleted when they were received. One that is dead has no due_at. A relay's lease
-- is in a column that no index has, and pages have room for the row that it makes,
-- so that it costs none of the indexes anything.
CREATE TABLE settle.outbox (
    seq          bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    event        uuid NOT NULL UNIQUE,
    operation    uuid NOT NULL,
    intent       uuid NOT NULL,
    at           timestamptz NOT NULL,
    due_at       timestamptz,
    leased_until timestamptz,
    deliveries   integer NOT NULL DEFAULT 0,
    type         text NOT NULL,
    data         bytea
) WITH (fillfactor = 50);

CREATE INDEX outbox_operation ON settle.outbox (operation, seq);

CREATE INDEX outbox_due ON settle.outbox (due_at, seq) WHERE due_at IS NOT NULL;
