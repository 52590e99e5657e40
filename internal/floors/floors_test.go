package floors

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/settle-go/settle"

// floors says what of this module the packages at a path may import in code
// that isn't a test, besides what is below themselves. "p/..." is p and all
// below it, "." the root package. The first floor that fits a package is its
// own. A new folder at the top needs a line here.
var floors = []struct {
	of  string
	may []string
}{
	{"store", nil},
	// The conformance suite walks every driver beside the simplest one.
	{"store/storetest", []string{"store", "store/memory", "internal/..."}},
	{"store/...", []string{"store", "internal/..."}},
	{"internal/...", []string{"store", "internal/..."}},
	{".", []string{"store", "internal/..."}},
	{"settletest/...", []string{".", "store/...", "internal/..."}},
	// It is a program that plays the adapters, not one of them.
	{"tools/duplicates", []string{".", "store/...", "internal/...", "tools/..."}},
	// It writes in a transaction of the ledger's database, which the drivers hand out.
	{"tools/sqltool", []string{".", "store/postgres", "store/sqlite", "internal/...", "tools/internal/..."}},
	{"tools/...", []string{".", "store", "internal/...", "tools/..."}},
	{"console/...", []string{".", "store", "internal/...", "console/..."}},
	{"cmd/...", []string{".", "store/...", "internal/...", "tools/...", "console/...", "cmd/..."}},
	{"examples/...", []string{".", "store/...", "internal/...", "tools/...", "console/...", "settletest/...", "examples/..."}},
	{"bench/...", []string{".", "store/...", "internal/...", "tools/...", "bench/..."}},
}

// harness lists the internal packages that exist for tests. Besides tests only
// benchmarks, examples, the program that shows duplicates, and the harness
// itself, may import them.
var harness = []string{"internal/farside", "internal/faulty", "internal/pgtest", "internal/scripted"}

// libraryModules are what the root module's code may depend on: every user of
// settle inherits them.
var libraryModules = []string{
	"github.com/cenkalti/backoff/v4",
	"github.com/google/uuid",
	"github.com/invopop/jsonschema",
	"github.com/jackc/pgx/v5",
	"github.com/pressly/goose/v3",
	"github.com/santhosh-tekuri/jsonschema/v6",
	"go.opentelemetry.io/otel",
	"go.opentelemetry.io/otel/metric",
	"go.opentelemetry.io/otel/trace",
	"golang.org/x/text",
	"modernc.org/sqlite",
}

// testModules are what only its tests and examples may depend on besides. The
// OpenTelemetry SDK is among them: which one runs is the host's choice.
var testModules = []string{
	"github.com/shopspring/decimal",
	"go.opentelemetry.io/otel/sdk",
	"go.opentelemetry.io/otel/sdk/metric",
}

// listed is what `go list` says of a package.
type listed struct {
	ImportPath   string
	ForTest      string
	Standard     bool
	Module       *struct{ Path string }
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func (p listed) module() string {
	if p.Module == nil {
		return ""
	}
	return p.Module.Path
}

// isOwn holds for a package of this workspace, but not for the variants of it
// that are built for tests.
func (p listed) isOwn() bool {
	_, own := relative(p.ImportPath)
	return own && p.ForTest == "" && !strings.HasSuffix(p.ImportPath, ".test")
}

// list returns every package that the workspace's packages and their tests are
// built from, by import path.
func list(t *testing.T) map[string]listed {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-test",
		"-json=ImportPath,ForTest,Standard,Module,Imports,TestImports,XTestImports", "work")
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, said.Bytes())
	}
	packages := make(map[string]listed)
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatalf("read what go list says: %v", err)
		}
		packages[p.ImportPath] = p
	}
}

// relative returns a package's path in this module, "." for its root; false for
// a package of others.
func relative(path string) (string, bool) {
	if path == module {
		return ".", true
	}
	return strings.CutPrefix(path, module+"/")
}

// fits tells whether a path in the module is the pattern's.
func fits(pattern, path string) bool {
	if below, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == below || strings.HasPrefix(path, below+"/")
	}
	return path == pattern
}

func fitsAny(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return fits(pattern, path) })
}

// objection says what is wrong with one package's import of another, both paths
// in the module; "" where nothing is.
func objection(from, to string) string {
	if strings.HasPrefix(from, "tools/") && strings.HasSuffix(from, "/example") {
		from = "examples/" + from // an adapter's example stands in its module, and on the floor of all examples
	}
	if fitsAny(harness, to) && !fitsAny(append([]string{"bench/...", "examples/...", "tools/duplicates"}, harness...), from) {
		return "it is there for tests only"
	}
	for _, floor := range floors {
		if !fits(floor.of, from) {
			continue
		}
		if len(floor.may) == 0 {
			return "it knows nobody of this module"
		}
		if fitsAny(floor.may, to) || strings.HasPrefix(to, from+"/") {
			return ""
		}
		return "it may know " + strings.Join(floor.may, ", ")
	}
	return "it is on no floor: add it to the table in floors_test.go"
}

func TestPackagesKeepToTheirFloor(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, p := range list(t) {
		from, own := relative(p.ImportPath)
		if !own || !p.isOwn() {
			continue
		}
		seen++
		for _, imported := range p.Imports {
			to, own := relative(imported)
			if !own {
				continue
			}
			if said := objection(from, to); said != "" {
				t.Errorf("%s imports %s: %s", from, to, said)
			}
		}
	}
	if seen == 0 {
		t.Error("go list names no package of this module")
	}
}

func TestFloorsObject(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		from, to string
		objects  bool
	}{
		{"store", "internal/canonical", true},
		{"store", "store/memory", true},
		{"store/sqlite", "store", false},
		{"store/sqlite", "store/postgres", true},
		{"store/sqlite", ".", true},
		{"store/sqlite", "store/sqlite/migrations", false},
		{"store/storetest", "store/memory", false},
		{"store/storetest", "store/sqlite", true},
		{"internal/schema", "internal/canonical", false},
		{"internal/schema", ".", true},
		{".", "store", false},
		{".", "store/memory", true},
		{".", "internal/pgtest", true},
		{".", "tools/http", true},
		{"tools/http", ".", false},
		{"tools/http", "cmd/settle", true},
		{"tools/http", "store/sqlite", true},
		{"tools/sqltool", "store/sqlite", false},
		{"cmd/settle", "store/postgres", false},
		{"bench", "internal/pgtest", false},
		{"internal/faulty", "internal/pgtest", false},
		{"newfolder", "store", true},
		{"storehouse", "store", true},
	} {
		if said := objection(tc.from, tc.to); (said != "") != tc.objects {
			t.Errorf("%s imports %s: the objection is %q", tc.from, tc.to, said)
		}
	}
}

func TestRootModuleDependsOnFewModules(t *testing.T) {
	t.Parallel()
	packages := list(t)
	for _, p := range packages {
		if !p.isOwn() || p.module() != module {
			continue
		}
		path, _ := relative(p.ImportPath)
		inCode := libraryModules
		if fitsAny(append([]string{"examples/..."}, harness...), path) {
			inCode = slices.Concat(libraryModules, testModules)
		}
		checkModules(t, packages, path, p.Imports, inCode, "its code")
		inTests := slices.Concat(libraryModules, testModules)
		checkModules(t, packages, path, slices.Concat(p.TestImports, p.XTestImports), inTests, "its tests")
	}
}

// checkModules fails the test for each import from a module that isn't allowed.
func checkModules(t *testing.T, packages map[string]listed, path string, imports, allowed []string, where string) {
	t.Helper()
	for _, imported := range imports {
		p := packages[imported]
		if p.Standard || imported == "C" || p.isOwn() || slices.Contains(allowed, p.module()) {
			continue
		}
		t.Errorf("%s imports %s in %s: the module %q isn't on that list in floors_test.go; a part of settle that needs more becomes a module of its own", path, imported, where, p.module())
	}
}

// The lists above and go.mod say the same: what it requires directly is listed,
// and what is listed is required.
func TestListedModulesAreRequired(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json", "../../go.mod")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go mod edit: %v", err)
	}
	var file struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(out, &file); err != nil {
		t.Fatal(err)
	}
	allowed := slices.Concat(libraryModules, testModules)
	required := make(map[string]bool)
	for _, r := range file.Require {
		required[r.Path] = true
		if !r.Indirect && !slices.Contains(allowed, r.Path) {
			t.Errorf("go.mod requires %s directly, which isn't on a list in floors_test.go", r.Path)
		}
	}
	for _, path := range allowed {
		if !required[path] {
			t.Errorf("%s is on a list in floors_test.go, and go.mod doesn't require it", path)
		}
	}
}
