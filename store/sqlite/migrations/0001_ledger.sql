-- The ledger's tables. Ids and digests are BLOBs, instants and durations
-- INTEGERs in microseconds (instants since 1970, UTC), NULL is "none".
-- Every name begins with settle_, so that the tables can stand beside a host's own.

-- The last instant that was stored: the clock of a host may step back, the
-- ledger's doesn't, whichever process reads it.
CREATE TABLE settle_clock (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    at  INTEGER NOT NULL
) STRICT;
INSERT INTO settle_clock (one, at) VALUES (1, 0);

CREATE TABLE settle_tenant (
    id     BLOB PRIMARY KEY NOT NULL,
    digest BLOB NOT NULL UNIQUE,   -- SHA-256 over the name
    name   TEXT NOT NULL,
    key    BLOB
) STRICT;
CREATE INDEX settle_tenant_name ON settle_tenant (name);

CREATE TABLE settle_intent (
    id         BLOB PRIMARY KEY NOT NULL,
    digest     BLOB NOT NULL UNIQUE,   -- SHA-256 over the tuple that names it (R7)
    principal  BLOB,                   -- SHA-256 over tenant and subject (R52)
    tenant     BLOB NOT NULL REFERENCES settle_tenant (id),
    subject    TEXT NOT NULL,
    task       TEXT NOT NULL,
    goal       TEXT NOT NULL,
    key        BLOB,
    version    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    closed_at  INTEGER
) STRICT;

-- The identity definition of a tool, pinned per intent at its first use (R3).
CREATE TABLE settle_contract (
    intent BLOB NOT NULL,
    tool   TEXT NOT NULL,
    digest BLOB NOT NULL,
    PRIMARY KEY (intent, tool)
) STRICT, WITHOUT ROWID;

CREATE TABLE settle_operation (
    seq             INTEGER PRIMARY KEY,   -- in the order of the claims, for what is filed by shelves
    id              BLOB NOT NULL UNIQUE,
    intent          BLOB NOT NULL REFERENCES settle_intent (id),
    tenant          BLOB NOT NULL,
    slot            BLOB NOT NULL,
    number          INTEGER NOT NULL DEFAULT 0,
    parent          BLOB,
    tool            TEXT NOT NULL,
    class           TEXT NOT NULL DEFAULT 'unsafe',
    contract        BLOB,
    source          TEXT,
    node            BLOB,
    occurrence      INTEGER NOT NULL DEFAULT 0,
    state           TEXT NOT NULL,
    reason          TEXT,
    version         INTEGER NOT NULL DEFAULT 0,
    tail            BLOB NOT NULL,
    tail_at         INTEGER NOT NULL,
    attempt         INTEGER NOT NULL DEFAULT 0,
    doubts          INTEGER NOT NULL DEFAULT 0,
    owner           BLOB,
    run             BLOB,
    batch           BLOB,
    told            INTEGER NOT NULL DEFAULT 0,
    granted         INTEGER NOT NULL DEFAULT 0,
    taken           TEXT,
    lease_until     INTEGER,
    due_at          INTEGER,
    moment          INTEGER,
    visibility      INTEGER NOT NULL DEFAULT 0,
    key_until       INTEGER,
    escalate        INTEGER NOT NULL DEFAULT 0,
    checks          INTEGER NOT NULL DEFAULT 0,
    verdict         TEXT,
    created_at      INTEGER NOT NULL,
    first_sent      INTEGER,
    unknown_since   INTEGER,
    settled_at      INTEGER,
    fingerprint     BLOB,
    fields          BLOB,
    arguments       BLOB,
    call_id         TEXT,
    trace           BLOB,
    resource        TEXT,
    resource_digest BLOB,
    by_attribute    INTEGER NOT NULL DEFAULT 0,
    result          BLOB,
    result_version  INTEGER NOT NULL DEFAULT 0,
    flags           INTEGER NOT NULL DEFAULT 0,
    unique_digest   BLOB,
    resource_key    BLOB,
    resource_seq    INTEGER NOT NULL DEFAULT 0,
    retention       INTEGER NOT NULL DEFAULT 0,
    -- The first two events of an operation that was claimed as running and
    -- completed by its first attempt, where settle_event doesn't have them (R57).
    claimed_at      INTEGER,
    claimed_by      TEXT,
    ended_at        INTEGER,
    ended_kind      TEXT,
    ended_by        TEXT,
    ended_body      BLOB,
    CHECK (by_attribute = 0 OR resource_digest IS NOT NULL)   -- R34
) STRICT;

-- This one decides who executes (R19). Its prefix also finds an intent's operations.
CREATE UNIQUE INDEX settle_operation_slot ON settle_operation (intent, slot, number);
-- What the machine has to look at, pair by pair (R36).
CREATE INDEX settle_operation_due ON settle_operation (tool, tenant, due_at, id) WHERE due_at IS NOT NULL;
-- At most one operation that isn't failed per unique identity (R14).
CREATE UNIQUE INDEX settle_operation_unique ON settle_operation (unique_digest)
    WHERE unique_digest IS NOT NULL AND state <> 'failed';
-- The writes on a resource and their numbers; the second holds those that are not settled (R31).
CREATE UNIQUE INDEX settle_operation_write ON settle_operation (resource_key, resource_seq) WHERE resource_key IS NOT NULL;
CREATE INDEX settle_operation_write_open ON settle_operation (resource_key, resource_seq)
    WHERE resource_key IS NOT NULL AND (settled_at IS NULL OR doubts > 0);
-- What settles with attribute evidence settles alone (R34).
CREATE UNIQUE INDEX settle_operation_by_attribute ON settle_operation (tool, resource_digest) WHERE by_attribute = 1;
-- Filed by shelves of 512 operations. What is completed goes to a few pages then,
-- and not to one of its own each, which took a sixth of a first execution. Who asks
-- for a resource, once per piece of attribute evidence, looks on all shelves.
CREATE INDEX settle_operation_resource ON settle_operation (tool, seq >> 9, resource_digest)
    WHERE resource_digest IS NOT NULL AND state = 'completed';
-- What deleted operations of closed intents were completed with: it settles no
-- other one (R34).
CREATE TABLE settle_outcome (
    tool            TEXT NOT NULL,
    resource_digest BLOB NOT NULL,
    PRIMARY KEY (tool, resource_digest)
) STRICT, WITHOUT ROWID;
-- Each further index costs every claim a page of the log. The same side effect in
-- other intents (R39), which people ask for once per case, is found without one.
CREATE INDEX settle_operation_parent ON settle_operation (parent, id) WHERE parent IS NOT NULL;
-- The few that wait for evidence, a call or a person, out of the many that are done.
CREATE INDEX settle_operation_waiting ON settle_operation (id) WHERE settled_at IS NULL AND lease_until IS NULL;

-- The state table (R20): a move that is not here can't be journaled.
CREATE TABLE settle_move (move TEXT PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO settle_move (move) VALUES
    ('>running'), ('>awaiting_approval'), ('>retryable'),
    ('awaiting_approval>awaiting_approval'), ('awaiting_approval>retryable'), ('awaiting_approval>failed'),
    ('awaiting_approval>abandoned'),
    ('running>running'), ('running>completed'), ('running>failed'), ('running>retryable'), ('running>unknown'),
    ('running>manual'), ('running>superseded'),
    ('retryable>retryable'), ('retryable>running'), ('retryable>awaiting_approval'), ('retryable>completed'),
    ('retryable>failed'), ('retryable>manual'), ('retryable>superseded'), ('retryable>abandoned'),
    ('unknown>unknown'), ('unknown>running'), ('unknown>completed'), ('unknown>failed'), ('unknown>retryable'),
    ('unknown>manual'), ('unknown>superseded'),
    ('manual>manual'), ('manual>completed'), ('manual>failed'), ('manual>retryable'), ('manual>unknown'),
    ('manual>superseded'), ('manual>abandoned'),
    ('completed>completed'),
    ('failed>failed'), ('failed>manual'),
    ('superseded>superseded'),
    ('abandoned>abandoned'), ('abandoned>manual');

-- The journal: append-only, in order, chained by hash (R57). It lacks the events
-- that rows of settle_operation stand for.
CREATE TABLE settle_event (
    operation BLOB NOT NULL,
    seq       INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    move      TEXT NOT NULL REFERENCES settle_move (move),
    kind      TEXT,
    actor     TEXT,
    attempt   INTEGER NOT NULL,
    reason    TEXT,
    decision  BLOB,
    body      BLOB,
    hash      BLOB NOT NULL,
    PRIMARY KEY (operation, seq)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX settle_event_decision ON settle_event (operation, decision) WHERE decision IS NOT NULL;
CREATE TRIGGER settle_event_append BEFORE UPDATE ON settle_event
BEGIN
    SELECT RAISE(ABORT, 'an event is never changed');
END;
CREATE TRIGGER settle_operation_claimed BEFORE UPDATE OF claimed_at, claimed_by ON settle_operation
BEGIN
    SELECT RAISE(ABORT, 'an event is never changed');
END;
CREATE TRIGGER settle_operation_ended BEFORE UPDATE OF ended_at, ended_kind, ended_by, ended_body ON settle_operation
WHEN OLD.ended_at IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'an event is never changed');
END;

-- What a person has to settle (R39).
CREATE TABLE settle_case (
    id        BLOB PRIMARY KEY NOT NULL,
    operation BLOB NOT NULL REFERENCES settle_operation (id),
    tenant    BLOB NOT NULL,
    tool      TEXT NOT NULL,
    reason    TEXT,
    incident  INTEGER NOT NULL,
    opened_at INTEGER NOT NULL,
    closed_at INTEGER,
    holder    TEXT,
    held_at   INTEGER,
    proposal  BLOB
) STRICT;
CREATE INDEX settle_case_operation ON settle_case (operation, opened_at);
CREATE UNIQUE INDEX settle_case_open ON settle_case (operation) WHERE closed_at IS NULL AND incident = 0;
-- What people without a tool's code need to know of it.
CREATE TABLE settle_tool (
    tool          TEXT PRIMARY KEY NOT NULL,
    deciders      INTEGER NOT NULL,
    guidance      TEXT,
    result_schema BLOB
) STRICT, WITHOUT ROWID;

-- The queue, and that of a tenant, of a tool and of an operator: the first page of
-- each costs what is on it, however many other cases are older.
CREATE INDEX settle_case_list ON settle_case (opened_at, id) WHERE closed_at IS NULL;
CREATE INDEX settle_case_tenant ON settle_case (tenant, opened_at, id) WHERE closed_at IS NULL;
CREATE INDEX settle_case_tool ON settle_case (tool, opened_at, id) WHERE closed_at IS NULL;
CREATE INDEX settle_case_holder ON settle_case (holder, opened_at, id) WHERE closed_at IS NULL AND holder IS NOT NULL;

-- What changed nothing: refusals, conflicts, reveals (R57).
CREATE TABLE settle_audit (
    id        INTEGER PRIMARY KEY,
    operation BLOB,
    at        INTEGER NOT NULL,
    kind      TEXT NOT NULL,
    actor     TEXT NOT NULL,
    detail    TEXT
) STRICT;
CREATE INDEX settle_audit_operation ON settle_audit (operation, id) WHERE operation IS NOT NULL;

-- Events on their way to others (R54): written with the change that they tell of,
-- deleted when they were received. One that is dead has no due_at.
CREATE TABLE settle_outbox (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    event      BLOB NOT NULL UNIQUE,
    operation  BLOB NOT NULL,
    intent     BLOB NOT NULL,
    at         INTEGER NOT NULL,
    due_at     INTEGER,
    deliveries INTEGER NOT NULL DEFAULT 0,
    type       TEXT NOT NULL,
    data       BLOB
) STRICT;
CREATE INDEX settle_outbox_operation ON settle_outbox (operation, seq);
CREATE INDEX settle_outbox_due ON settle_outbox (due_at, seq) WHERE due_at IS NOT NULL;
