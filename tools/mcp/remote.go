package settlemcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/settle-go/settle"
	jsonschema "github.com/settle-go/settle/internal/schema"
	"github.com/settle-go/settle/tools/internal/arguments"
	"github.com/settle-go/settle/tools/internal/mcpwire"
)

// Remote is an MCP server of somebody else's, as the host sees it.
type Remote struct {
	// Name is the host's name for the server, not what the server calls itself:
	// letters, digits and hyphens. It is part of its tools' names, so that equal
	// tools of two servers are two tools (R4, S83).
	Name string
	// Tools says what the host knows of the server's tools, by their names there.
	// One that isn't in it is Unsafe, with all of its arguments as identity and
	// without a lookup. Names that the server doesn't have are left out.
	Tools map[string]Mapped
	// Trusted lets the server's hints decide the class of tools that the host
	// hasn't mapped: a read-only hint makes a tool Read, an idempotent one
	// Idempotent where Resources names what it writes. What contradicts itself is
	// Unsafe, and no hint makes a tool Keyed.
	Trusted bool
	// Resources names the arguments that say what a tool writes, by the tool's
	// name: no hint tells which of two writes on one thing is the older (R31).
	Resources map[string][]string
}

// Mapped is what the host knows of a server's tool.
type Mapped struct {
	Contract settle.Contract
	// Schema is the digest of the input schema that the contract was written for
	// ([SchemaDigest]). A tool whose schema is another one is Unsafe, whatever
	// its contract says, until the host has looked at it again (R4). Every class
	// but Unsafe needs it; where it is missing, the error tells it.
	Schema string
	// Key is the name in a call's _meta under which the server takes the
	// operation's key. A Keyed tool needs it.
	Key string
	// Lookup asks whether the effect happened, by whatever way the host knows.
	Lookup func(ctx context.Context, q settle.Query[json.RawMessage], args json.RawMessage) (settle.Evidence, error)
}

// serverName leaves out the underscore, which stands between server and tool.
var serverName = regexp.MustCompile(`^[a-zA-Z0-9-]+$`)

// ToolName is the name of a server's tool for the executor and the model, such as
// "github_create_issue".
func (r Remote) ToolName(tool string) string { return r.Name + "_" + tool }

// SchemaDigest is a digest of a tool's input schema, as a client sees it: without
// the order of its members.
func SchemaDigest(tool *mcp.Tool) (string, error) {
	schema, err := json.Marshal(tool.InputSchema)
	var doc any
	if err := errors.Join(err, json.Unmarshal(schema, &doc)); err != nil {
		return "", fmt.Errorf("settlemcp: the input schema is no JSON Schema: %w", err)
	}
	if schema, err = json.Marshal(doc); err != nil {
		return "", fmt.Errorf("settlemcp: the input schema is no JSON Schema: %w", err)
	}
	sum := sha256.Sum256(schema)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// Import lists the server's tools and returns them as tools for an executor, each
// with a Do that calls it over the session:
//
//	tools, err := remote.Import(ctx, session)
//	for _, t := range tools {
//		options = append(options, settle.WithTools(t))
//	}
//
// To guard the session's own calls with [Remote.Sending] instead, take Do away and
// register the tools with [settle.WithGuarded]. A host may change what it gets,
// such as a description that it doesn't want its model to read.
//
// When the server says that its list has changed, import again and build another
// executor. The error joins everything that is wrong with the mapping.
func (r Remote) Import(ctx context.Context, session *mcp.ClientSession) ([]settle.RawTool, error) {
	if !serverName.MatchString(r.Name) {
		return nil, errors.New("settlemcp: a server's name has letters, digits and hyphens, and no more")
	}
	var all []settle.RawTool
	var problems []error
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, fmt.Errorf("settlemcp: list the tools of the server: %w", err)
		}
		imported, err := r.imported(session, tool)
		if err != nil {
			problems = append(problems, fmt.Errorf("settlemcp: tool %q: %w", r.ToolName(tool.Name), err))
			continue
		}
		all = append(all, imported)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return all, nil
}

func (r Remote) imported(session *mcp.ClientSession, tool *mcp.Tool) (settle.RawTool, error) {
	schema, err := json.Marshal(tool.InputSchema)
	if err != nil {
		return settle.RawTool{}, fmt.Errorf("its input schema is no JSON Schema: %w", err)
	}
	contract, err := r.contract(tool)
	if err != nil {
		return settle.RawTool{}, err
	}
	mapped := r.Tools[tool.Name]
	return settle.RawTool{
		Name: r.ToolName(tool.Name), Description: tool.Description, Schema: jsonschema.Foreign(schema),
		Contract: contract, Lookup: mapped.Lookup,
		Do: func(ctx context.Context, op settle.Op, args json.RawMessage) (json.RawMessage, error) {
			params := &mcp.CallToolParams{Name: tool.Name, Arguments: args}
			if contract.Class == settle.Keyed {
				params.Meta = mcpwire.WithKey(nil, mapped.Key, op.Key())
			}
			result, err := session.CallTool(context.WithValue(ctx, importedCall{}, true), params)
			judged, err := judgeRemote(result, err, contract.Class == settle.Read)
			if err != nil {
				return nil, err
			}
			return judged.MarshalJSON()
		},
	}, nil
}

// importedCall marks the context of a call that the executor makes already, which
// [Remote.Sending] lets pass.
type importedCall struct{}

// contract is what the host says of a tool, less what its schema or its own hints
// take away; or what the hints of a trusted server are worth.
func (r Remote) contract(tool *mcp.Tool) (settle.Contract, error) {
	mapped, known := r.Tools[tool.Name]
	if !known {
		return r.hinted(tool), nil
	}
	c := mapped.Contract
	if c.Class == settle.Unsafe {
		return c, nil
	}
	digest, err := SchemaDigest(tool)
	switch {
	case err != nil:
		return c, err
	case mapped.Schema == "":
		return c, fmt.Errorf("it is mapped as %s for a schema that isn't named: look at the schema that the server offers, then set Schema to %q (R4)", c.Class, digest)
	case c.Class == settle.Keyed && mapped.Key == "":
		return c, errors.New("it is mapped as keyed and nothing sends its key: set Key to the name in _meta under which the server takes it")
	case mapped.Schema != digest, c.Class == settle.Read && destructive(tool):
		return unsafely(c, mapped.Lookup != nil, tool), nil
	}
	return c, nil
}

// hinted is the contract of a tool that the host hasn't mapped.
func (r Remote) hinted(tool *mcp.Tool) settle.Contract {
	if r.Trusted {
		resource := r.Resources[tool.Name]
		switch class := mcpwire.ClassOf(hintsOf(tool)); {
		case class == settle.Read:
			return settle.Contract{Class: settle.Read}
		case class == settle.Idempotent && len(resource) > 0:
			return settle.Contract{Class: settle.Idempotent, Identity: resource}
		}
	}
	return settle.Contract{WholeArguments: true, NoLookup: true}
}

// unsafely keeps everything of a contract but its class and what belongs to it:
// approvals, permissions, secrets and identity stay in force. An identity that a
// changed schema doesn't have any more becomes all of the arguments, under which
// the calls of an earlier one are held (R3).
func unsafely(c settle.Contract, hasLookup bool, tool *mcp.Tool) settle.Contract {
	c.Class, c.KeyWindow, c.Attempts = settle.Unsafe, 0, 0
	c.NoLookup = !hasLookup
	has := fieldsOf(tool)
	c.Ignore = slices.DeleteFunc(slices.Clone(c.Ignore), func(path string) bool { return !has(path, false) })
	if slices.ContainsFunc(c.Identity, func(path string) bool { return !has(path, true) }) && !c.Unique {
		c.Identity, c.Normalize = nil, nil
	}
	c.WholeArguments = len(c.Identity) == 0
	return c
}

// fieldsOf says whether a path leads to a field of a tool's arguments, and
// whether each call has it.
func fieldsOf(tool *mcp.Tool) func(path string, always bool) bool {
	schema, err := json.Marshal(tool.InputSchema)
	if err != nil {
		return func(string, bool) bool { return false }
	}
	declared, err := arguments.Of[json.RawMessage](jsonschema.Foreign(schema))
	if err != nil {
		return func(string, bool) bool { return false }
	}
	return func(path string, always bool) bool {
		sure, err := declared.Use(path)
		return err == nil && (sure || !always || strings.ContainsAny(path, "./"))
	}
}

// hintsOf are a tool's annotations. The SDK's two plain ones can't be told from
// ones that weren't given, and count for nothing where they are false.
func hintsOf(tool *mcp.Tool) mcpwire.Hints {
	a := tool.Annotations
	if a == nil {
		return mcpwire.Hints{}
	}
	return mcpwire.Hints{ReadOnly: &a.ReadOnlyHint, Idempotent: &a.IdempotentHint, Destructive: a.DestructiveHint, OpenWorld: a.OpenWorldHint}
}

func destructive(tool *mcp.Tool) bool {
	hint := hintsOf(tool).Destructive
	return hint != nil && *hint
}
