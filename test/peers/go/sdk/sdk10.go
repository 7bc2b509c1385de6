//go:build sdk10

// What is written differently for 1.0: no URL elicitation, no modern era, no choice of revisions, no public error type.
package main

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func refusal() error { return mcp.ResourceNotFoundError("peer://refused") }

func capable(*mcp.ClientOptions) {}

func narrowServer(*mcp.ServerOptions) {}

func streamable() *mcp.StreamableHTTPOptions { return nil }

func hostSession() *mcp.ClientSessionOptions { return nil }

func elicited(*mcp.ElicitParams) *mcp.ElicitResult {
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": "yes"}}
}

var questions = map[string]func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error){
	"ask_form": func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return answered(req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Which answer?", RequestedSchema: form}))
	},
	"sample": func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return answered(req.Session.CreateMessage(ctx, sampling))
	},
	"roots": func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return answered(req.Session.ListRoots(ctx, nil))
	},
}
