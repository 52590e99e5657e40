// Package mcpwire is what the adapters of the two MCP libraries put on the wire,
// and read from it, in the same way: the task, the outcome, what the ledger keeps
// of a tool's result, and what a tool's hints are worth.
package mcpwire
