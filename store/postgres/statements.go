package postgres

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/settle-go/settle/store"
)

// DefaultSchema is the PostgreSQL schema that the ledger lives in where
// [WithSchema] doesn't say otherwise.
const DefaultSchema = "settle"

//go:embed sql/*.sql
var sqlFiles embed.FS

// statements holds the texts of folder sql, made for one schema.
type statements struct {
	claim, claimFirst string

	lockLimit, lockBriefly, bind, unbind, lockContracts string
	numberResources, lockResources                      string
	enterSingles, lockSingles, lockGuards               string
	claimGuarded, slots, holding, unique, rivals        string
	settle, move, reopen, start, rivalsOf               string
	lockResource, lockSingle, current                   string
	proposeTenant, proposeIntent, findIntent            string
	renew, take, takeOne, audit                         string
	get, list, listIntent, listParent, ofTenant         string
	events, settings, tables, standbys                  string

	cases, caseOfTenant, audits, auditsOfNone, declare, declared string
	uncompiled, purgePage, purge, erasePage, erase               string
	intentNamed, unsettled, lockOwn                              string
	entombAll, dropProposals, closeIntent                        string

	announce, fetch, delivered, undelivered           string
	waiting, promote, redeliver, discard, emptyOutbox string
}

func newStatements(schema string, limit lockLimit) (statements, error) {
	t, err := readTexts(sqlFiles, schema)
	if err != nil {
		return statements{}, err
	}
	t.parts["limit_ms"] = limit.literal()
	t.parts["brief_ms"] = limit.brief()
	t.parts["clock"] = limit.clock()
	t.parts["purged"] = fmt.Sprintf("%d::smallint", store.FlagPurged)
	t.parts["behind_dead"] = fmt.Sprintf("interval '%d seconds'", int64(store.BehindDead.Seconds()))
	t.parts["grace"] = fmt.Sprintf("interval '%d microseconds'", store.ClosedGrace.Microseconds())
	s := statements{
		claim: t.of("claim"), claimFirst: t.of("claim_first"),
		lockLimit: t.of("lock_limit"), lockBriefly: t.of("lock_briefly"), bind: t.of("bind"), lockContracts: t.of("lock_contracts"),
		numberResources: t.of("number_resources"), lockResources: t.of("lock_resources"),
		enterSingles: t.of("enter_singles"), lockSingles: t.of("lock_singles"), lockGuards: t.of("lock_guards"), claimGuarded: t.of("claim_guarded"), unbind: t.of("unbind"),
		slots: t.of("slots"), holding: t.of("holding"), unique: t.of("unique"), rivals: t.of("rivals"),
		settle: t.of("settle"), move: t.of("move"), reopen: t.of("reopen"), lockResource: t.of("lock_resource"), lockSingle: t.of("lock_single"), start: t.of("start"),
		rivalsOf: t.of("rivals_of"), current: t.of("current"),
		proposeTenant: t.of("propose_tenant"), proposeIntent: t.of("propose_intent"), findIntent: t.of("find_intent"),
		renew: t.of("renew"), take: t.of("take"), takeOne: t.of("take_one"),
		get: t.of("get"), list: t.of("list"), listIntent: t.of("list_intent"), listParent: t.of("list_parent"), ofTenant: t.of("of_tenant"), events: t.of("events"), audit: t.of("audit"),
		cases: t.of("cases"), audits: t.of("audits"), auditsOfNone: t.of("audits_of_none"), declare: t.of("declare"), declared: t.of("declared"),
		caseOfTenant: t.of("case_of_tenant"),
		uncompiled:   t.of("uncompiled"), purgePage: t.of("purge_page"), purge: t.of("purge"), erasePage: t.of("erase_page"), erase: t.of("erase"),
		intentNamed: t.of("intent_named"), unsettled: t.of("unsettled"), lockOwn: t.of("lock_own"),
		entombAll: t.of("entomb_all"), dropProposals: t.of("drop_proposals"), closeIntent: t.of("close_intent"),
		announce: t.of("announce"), fetch: t.of("fetch"), delivered: t.of("delivered"), undelivered: t.of("undelivered"),
		waiting: t.of("waiting"), promote: t.of("promote"), redeliver: t.of("redeliver"), discard: t.of("discard"), emptyOutbox: t.of("empty_outbox"),
		settings: t.of("settings"), tables: t.of("tables"), standbys: t.of("standbys"),
	}
	return s, t.err
}

// lockLimit bounds the waits for locks. It travels in the statement that reads
// the clock, since a session's settings don't survive a pooler between
// transactions; where the session has a limit already, it is left out.
type lockLimit struct {
	wait    time.Duration // the shorter of the ledger's own and the session's
	session bool
}

func (l lockLimit) literal() string { return fmt.Sprintf("'%dms'", l.wait.Milliseconds()) }

// brief is how long statements wait that travel together.
func (l lockLimit) brief() string {
	return fmt.Sprintf("'%dms'", min(l.wait, impatience).Milliseconds())
}

func (l lockLimit) clock() string {
	if l.session {
		return "(SELECT clock_timestamp() AS now)"
	}
	return "(SELECT clock_timestamp() AS now, set_config('lock_timeout', " + l.literal() + ", true))"
}

// texts are named pieces of SQL. A piece names another one in braces.
type texts struct {
	parts map[string]string
	err   error
}

func readTexts(files fs.FS, schema string) (*texts, error) {
	t := &texts{parts: map[string]string{}}
	names, err := fs.Glob(files, "sql/*.sql")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		if err := t.add(inSchema(string(content), schema)); err != nil {
			return nil, fmt.Errorf("store/postgres: %s: %w", name, err)
		}
	}
	return t, nil
}

// add takes in the pieces of a file, without their comments.
func (t *texts) add(content string) error {
	var name string
	for line := range strings.Lines(content) {
		if after, ok := strings.CutPrefix(line, "-- name: "); ok {
			name = strings.TrimSpace(after)
			if _, twice := t.parts[name]; twice {
				return fmt.Errorf("two statements are called %q", name)
			}
			t.parts[name] = ""
			continue
		}
		if strings.HasPrefix(strings.TrimSpace(line), "--") || name == "" {
			continue
		}
		t.parts[name] += line
	}
	return nil
}

var reference = regexp.MustCompile(`\{(\w+)\}`)

// of returns a statement with the pieces that it names put in.
func (t *texts) of(name string) string {
	text, ok := t.parts[name]
	if !ok && t.err == nil {
		t.err = fmt.Errorf("store/postgres: there is no statement %q", name)
	}
	return reference.ReplaceAllStringFunc(strings.TrimSpace(text), func(ref string) string {
		return t.of(ref[1 : len(ref)-1])
	})
}

var qualifier = regexp.MustCompile(`\bsettle\.`)

// inSchema replaces the schema that the SQL files are written for.
func inSchema(text, schema string) string {
	return qualifier.ReplaceAllLiteralString(text, pgx.Identifier{schema}.Sanitize()+".")
}
