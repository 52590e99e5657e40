package sqltool

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// statement is SQL whose parameters have names, as each database wants it. Every
// occurrence of a name has a number of its own, so that a database which infers
// the types of parameters may take one as a number here and as a text there.
type statement struct {
	postgres, sqlite string
	// names are those of the parameters 1, 2, 3, …
	names []string
	// writes says that it may change rows.
	writes bool
}

// parseStatement finds the parameters of one statement: ":name", or ":name.inner",
// outside of quotes and comments, and not after a colon (a cast).
func parseStatement(sql string, begins []string) (*statement, error) {
	p := &parser{sql: sql}
	for p.at < len(p.sql) {
		if err := p.next(); err != nil {
			return nil, fmt.Errorf("at byte %d: %w", p.at, err)
		}
	}
	p.copyTo(len(sql))
	switch {
	case len(p.words) == 0:
		return nil, errors.New("there is no statement")
	case !slices.Contains(begins, p.words[0]):
		return nil, fmt.Errorf("it begins with none of %s", strings.Join(begins, ", "))
	}
	for i, word := range p.words[1:] {
		if word == "ROLLBACK" && p.words[i] == "OR" {
			return nil, errors.New("OR ROLLBACK ends the ledger's transaction: leave it out, an error rolls back")
		}
	}
	return &statement{p.postgres.String(), p.sqlite.String(), p.names, p.writes()}, nil
}

// writes looks at the first word, and behind WITH for one that changes rows.
func (p *parser) writes() bool {
	switch p.words[0] {
	case "SELECT", "VALUES":
		return false
	case "WITH":
		return slices.ContainsFunc(p.words, func(word string) bool {
			return slices.Contains([]string{"INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE"}, word)
		})
	}
	return true
}

// parser reads a statement from left to right.
type parser struct {
	sql    string
	at     int
	copied int // up to where sql is in the results
	ended  bool

	postgres, sqlite strings.Builder
	names            []string
	words            []string // outside of quotes and comments, in capitals
}

func (p *parser) next() error {
	rest := p.sql[p.at:]
	switch c := rest[0]; {
	case strings.HasPrefix(rest, "--"):
		p.skip(lineEnd(rest))
	case strings.HasPrefix(rest, "/*"):
		return p.comment(rest)
	case strings.ContainsRune(" \t\r\n\f", rune(c)):
		p.at++
	case p.ended:
		return errors.New("there is more after the semicolon: write one statement, and the next one beside it")
	case c == ';':
		p.ended = true
		p.at++
	case c == '\'' || c == '"' || c == '`':
		return p.quoted(rest, c, false)
	case c == '$':
		return p.dollar(rest)
	case c == ':':
		return p.colon(rest)
	case c == '?':
		return errors.New("a question mark: write parameters as :name, and PostgreSQL's operator ? as the function jsonb_exists")
	case c == '@' && len(rest) > 1 && begins(rest[1]):
		return errors.New("an @ before a name: write parameters as :name, and a blank behind PostgreSQL's operator @")
	case begins(c):
		return p.word(rest)
	case digit(c):
		p.skip(wordEnd(rest))
	default:
		p.at++
	}
	return nil
}

func (p *parser) skip(n int) { p.at += n }

// word reads a key word or a name, and a string that one is before: E'…'.
func (p *parser) word(rest string) error {
	n := wordEnd(rest)
	p.words = append(p.words, strings.ToUpper(rest[:n]))
	p.skip(n)
	if escapes := rest[:n] == "e" || rest[:n] == "E"; escapes && strings.HasPrefix(rest[n:], "'") {
		return p.quoted(rest[n:], '\'', true)
	}
	return nil
}

var errQuote = errors.New("a quote that isn't closed")

// quoted skips to the closing quote. A doubled one is none, and neither is one
// after a backslash where the string has escapes.
func (p *parser) quoted(rest string, quote byte, escapes bool) error {
	for i := 1; i < len(rest); i++ {
		switch {
		case escapes && rest[i] == '\\':
			i++
		case rest[i] != quote:
		case i+1 < len(rest) && rest[i+1] == quote:
			i++
		default:
			p.skip(i + 1)
			return nil
		}
	}
	return errQuote
}

// comment skips one in block form. PostgreSQL nests them and SQLite doesn't, so
// that one inside another is refused.
func (p *parser) comment(rest string) error {
	end := strings.Index(rest[2:], "*/")
	if end < 0 {
		return errors.New("a comment that isn't closed")
	}
	if strings.Contains(rest[2:2+end], "/*") {
		return errors.New("a comment inside a comment: PostgreSQL and SQLite read it differently")
	}
	p.skip(end + 4)
	return nil
}

// dollar skips a string of PostgreSQL in dollar quotes.
func (p *parser) dollar(rest string) error {
	n := 1
	for n < len(rest) && rest[n] != '$' && inWord(rest[n]) {
		n++
	}
	if n == len(rest) || rest[n] != '$' || n > 1 && digit(rest[1]) {
		return errors.New("a $ before a name or a number: write parameters as :name")
	}
	tag := rest[:n+1]
	end := strings.Index(rest[len(tag):], tag)
	if end < 0 {
		return errQuote
	}
	p.skip(end + 2*len(tag))
	return nil
}

// colon reads a parameter, or leaves a cast, a slice or an assignment alone.
func (p *parser) colon(rest string) error {
	if strings.HasPrefix(rest, "::") {
		p.skip(2)
		return nil
	}
	if len(rest) == 1 || !begins(rest[1]) {
		p.skip(1)
		return nil
	}
	n := 1 + wordEnd(rest[1:])
	for n+1 < len(rest) && rest[n] == '.' && begins(rest[n+1]) {
		n += 1 + wordEnd(rest[n+1:])
	}
	p.copyTo(p.at)
	p.names = append(p.names, rest[1:n])
	number := strconv.Itoa(len(p.names))
	p.postgres.WriteString("$" + number)
	p.sqlite.WriteString("?" + number)
	p.skip(n)
	p.copied = p.at
	return nil
}

func (p *parser) copyTo(end int) {
	p.postgres.WriteString(p.sql[p.copied:end])
	p.sqlite.WriteString(p.sql[p.copied:end])
	p.copied = end
}

func lineEnd(text string) int {
	if n := strings.IndexByte(text, '\n'); n >= 0 {
		return n + 1
	}
	return len(text)
}

func wordEnd(text string) int {
	n := 0
	for n < len(text) && inWord(text[n]) {
		n++
	}
	return n
}

func digit(c byte) bool { return c >= '0' && c <= '9' }
func begins(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
func inWord(c byte) bool { return begins(c) || digit(c) || c == '$' }
