package sqltool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/schema"
	"github.com/settle-go/settle/tools/internal/arguments"
)

// Spec declares statements as a tool of class Transactional.
type Spec struct {
	Name, Description string
	// Schema is the JSON Schema of the arguments where In is json.RawMessage.
	Schema json.RawMessage
	// Contract is the author's promise. Its Class is Transactional, also where it
	// is left out. Its Resource, or the tag on Out, names the column of the result
	// that holds the effect's id.
	Contract settle.Contract
	// Checks are asked first, in their order.
	Checks []Check
	// Statements are carried out in their order, in the ledger's transaction.
	Statements []Statement
}

// Check is a condition for acting: a SELECT (or WITH, or VALUES) that finds a row,
// or, with Absent, that finds none. Where it isn't met, nothing is done and the
// call is rejected.
//
// A check holds for the statements behind it only as far as the database's
// isolation says. On PostgreSQL, lock what was checked with FOR UPDATE, or put
// the condition into the statement and say which rows it must change.
type Check struct {
	SQL    string
	Absent bool
	// Otherwise is what the model is told where the condition isn't met.
	Otherwise string
}

// Rows says how many rows a statement must change or return.
type Rows uint8

const (
	// One row, no more and no fewer.
	One Rows = iota
	// Some: at least one.
	Some
	// Any number, none included.
	Any
)

var rowsNames = [...]string{One: "one row", Some: "at least one row", Any: "any number of rows"}

func (r Rows) admits(n int64) bool {
	switch r {
	case One:
		return n == 1
	case Some:
		return n >= 1
	}
	return true
}

// Statement changes something: one SELECT, INSERT, UPDATE, DELETE, MERGE, REPLACE,
// WITH or VALUES. :order_id stands for the argument of that name, :customer.id
// for one inside it; an argument that is absent or null is NULL. Beside the
// arguments there are :settle_key, :settle_uuid, :settle_reference,
// :settle_tenant, :settle_subject and :settle_task.
type Statement struct {
	SQL string
	// Rows is how many it must change, or return where it is the Result. With
	// another number everything is rolled back and the call is rejected.
	Rows Rows
	// Otherwise is what the model is told then.
	Otherwise string
	// Violates, where it isn't empty, is what the model is told where the
	// statement breaks a constraint (unique, foreign key, check, not null): the
	// call is then rejected. Otherwise that is an error, which rolls back.
	Violates string
	// Result makes the rows that it returns the tool's result, by the names of the
	// columns: an object for One, otherwise an array of objects. One statement at
	// most has it. Without one the result is the zero Out.
	Result bool
}

// maxRows bounds the rows of a result.
const maxRows = 1000

// begin lists the words that statements and checks begin with. What would end the
// ledger's transaction isn't among them.
var (
	statementsBegin = []string{"SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "WITH", "VALUES"}
	checksBegin     = []string{"SELECT", "WITH", "VALUES"}
)

// tool is a declared tool, with its statements read.
type tool[In, Out any] struct {
	spec       Spec
	checks     []*statement
	statements []*statement
}

// New declares a tool. In and Out are Go types, or both json.RawMessage with a
// Schema. The error says everything that is wrong with the declaration; what is
// wrong with the contract, settle.New says. The statements themselves are first
// seen by the database when the tool runs.
func New[In, Out any](spec Spec) (settle.Tool[In, Out], error) {
	t := &tool[In, Out]{spec: spec}
	t.spec.Checks, t.spec.Statements = slices.Clone(spec.Checks), slices.Clone(spec.Statements)
	contract := spec.Contract
	var problems []error
	switch contract.Class {
	case settle.Transactional, settle.Unsafe: // the zero class
		contract.Class = settle.Transactional
	default:
		problems = append(problems, fmt.Errorf("its class is %s: what writes in the ledger's transaction is Transactional (R53)", contract.Class))
	}
	if err := errors.Join(append(problems, t.read())...); err != nil {
		return settle.Tool[In, Out]{}, fmt.Errorf("sqltool: tool %q: %s", spec.Name, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return settle.Tool[In, Out]{Name: spec.Name, Description: spec.Description, Schema: spec.Schema, Contract: contract, Do: t.do}, nil
}

func (t *tool[In, Out]) read() error {
	declared, err := arguments.Of[In](t.spec.Schema)
	if err != nil {
		return err
	}
	var problems []error
	note := func(what string, i int, err error) {
		if err != nil {
			problems = append(problems, fmt.Errorf("%s %d: %w", what, i+1, err))
		}
	}
	parse := func(what string, i int, sql string, begins []string) *statement {
		s, err := parseStatement(sql, begins)
		note(what, i, err)
		if err == nil {
			for _, name := range s.names {
				_, err := declared.Use(name)
				note(what, i, err)
			}
		}
		return s
	}
	for i, c := range t.spec.Checks {
		t.checks = append(t.checks, parse("check", i, c.SQL, checksBegin))
		if c.Otherwise == "" {
			note("check", i, errors.New("its Otherwise is empty: say what the model is told where the condition isn't met"))
		}
	}
	results := 0
	for i, s := range t.spec.Statements {
		t.statements = append(t.statements, parse("statement", i, s.SQL, statementsBegin))
		if t.statements[i] != nil && !t.statements[i].writes && !s.Result {
			note("statement", i, errors.New("it changes nothing and isn't the Result: make it a check"))
		}
		if s.Rows > Any {
			note("statement", i, errors.New("its Rows is none of One, Some and Any"))
		}
		if s.Result {
			results++
		}
	}
	if results > 1 {
		problems = append(problems, errors.New("more than one statement has Result: a tool has one result"))
	}
	if len(t.statements) == 0 {
		problems = append(problems, errors.New("there is no statement"))
	}
	return errors.Join(append(problems, declared.Unused(t.spec.Contract))...)
}

// do carries out the statements in the ledger's transaction, which its error
// rolls back (R53).
func (t *tool[In, Out]) do(ctx context.Context, op settle.Op, in In) (out Out, err error) {
	values, err := arguments.Read(op, in)
	if err != nil {
		return out, settle.Rejected(err)
	}
	db, err := transaction(ctx)
	if err != nil {
		return out, err
	}
	for i, c := range t.spec.Checks {
		args, err := bind(db, t.checks[i], values)
		if err != nil {
			return out, settle.Rejected(err)
		}
		found, err := db.finds(ctx, t.checks[i], args)
		if err != nil {
			return out, &Error{Check: i + 1, cause: err}
		}
		if found == c.Absent {
			return out, settle.Rejected(errors.New(c.Otherwise))
		}
	}
	for i, s := range t.spec.Statements {
		args, err := bind(db, t.statements[i], values)
		if err != nil {
			return out, settle.Rejected(err)
		}
		done, err := db.run(ctx, t.statements[i], args, s.Result)
		if err != nil {
			return out, failure(s, i, err)
		}
		if !s.Rows.admits(done.count) {
			return out, settle.Rejected(miscounted(s, i, done.count))
		}
		if !s.Result {
			continue
		}
		if out, err = result[Out](done.rows, s.Rows); err != nil {
			return out, &Error{Statement: i + 1, cause: err}
		}
	}
	return out, nil
}

// result decodes the rows that became the result.
func result[Out any](rows []row, want Rows) (out Out, err error) {
	var encoded []byte
	if want == One {
		encoded, err = json.Marshal(rows[0])
	} else {
		encoded, err = json.Marshal(append([]row{}, rows...))
	}
	if err != nil {
		return out, err
	}
	if raw, ok := any(&out).(*json.RawMessage); ok {
		*raw = encoded
		return out, nil
	}
	return out, schema.Read(encoded, &out)
}
