package main

import (
	"context"
	"encoding/json"
	"iter"
	"os/exec"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"peers/wire"
)

type session struct{ *mcp.ClientSession }

func host() { wire.Serve(connect) }

func connect(ctx context.Context, command wire.Command) (wire.Host, any, error) {
	options := &mcp.ClientOptions{
		LoggingMessageHandler: func(_ context.Context, req *mcp.LoggingMessageRequest) { wire.Event("log", req.Params) },
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			wire.Event("changed", map[string]string{"list": "tools"})
		},
		PromptListChangedHandler: func(context.Context, *mcp.PromptListChangedRequest) {
			wire.Event("changed", map[string]string{"list": "prompts"})
		},
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) {
			wire.Event("changed", map[string]string{"list": "resources"})
		},
		ResourceUpdatedHandler: func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
			wire.Event("updated", map[string]string{"uri": req.Params.URI})
		},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			wire.Event("progress", map[string]any{"progress": req.Params.Progress, "total": req.Params.Total, "message": req.Params.Message})
		},
		KeepAlive: *keepAlive,
	}
	if command.Capable {
		options.ElicitationHandler = func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			wire.Asked("elicitation/create", req.Params)
			return elicited(req.Params), nil
		}
		options.CreateMessageHandler = func(_ context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			wire.Asked("sampling/createMessage", req.Params)
			return &mcp.CreateMessageResult{Model: "peer-model", Role: "assistant", Content: &mcp.TextContent{Text: "sampled"}}, nil
		}
		capable(options)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "go-peer", Version: "1.0.0"}, options)
	if command.Capable {
		client.AddRoots(&mcp.Root{URI: "file:///peer/root", Name: "peer"})
	}
	var transport mcp.Transport
	switch command.Transport {
	case "stdio":
		transport = &mcp.CommandTransport{Command: exec.Command(command.Program, command.Args...)}
	case "sse":
		transport = &mcp.SSEClientTransport{Endpoint: command.URL}
	default:
		transport = &mcp.StreamableClientTransport{Endpoint: command.URL}
	}
	connected, err := client.Connect(ctx, transport, hostSession())
	if err != nil {
		return nil, nil, err
	}
	return &session{connected}, connected.InitializeResult(), nil
}

func all[T any](entries iter.Seq2[T, error]) (any, error) {
	found := []T{}
	for entry, err := range entries {
		if err != nil {
			return nil, err
		}
		found = append(found, entry)
	}
	return found, nil
}

func (s *session) Do(ctx context.Context, command wire.Command) (any, error) {
	switch command.Do {
	case "list":
		switch command.Of {
		case "tools":
			return all(s.Tools(ctx, nil))
		case "resources":
			return all(s.Resources(ctx, nil))
		case "prompts":
			return all(s.Prompts(ctx, nil))
		}
		return all(s.ResourceTemplates(ctx, nil))
	case "call":
		if command.TimeoutMs > 0 {
			limited, cancel := context.WithTimeout(ctx, time.Duration(command.TimeoutMs)*time.Millisecond)
			defer cancel()
			ctx = limited
		}
		params := &mcp.CallToolParams{Name: command.Name}
		if command.Arguments != nil {
			params.Arguments = command.Arguments
		}
		if command.Progress {
			params.Meta = mcp.Meta{}
			params.SetProgressToken(command.ID)
		}
		return s.CallTool(ctx, params)
	case "read":
		return s.ReadResource(ctx, &mcp.ReadResourceParams{URI: command.URI})
	case "subscribe":
		return map[string]any{}, s.Subscribe(ctx, &mcp.SubscribeParams{URI: command.URI})
	case "unsubscribe":
		return map[string]any{}, s.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: command.URI})
	case "prompt":
		return s.GetPrompt(ctx, &mcp.GetPromptParams{Name: command.Name, Arguments: command.Strings()})
	case "complete":
		var ref mcp.CompleteReference
		if err := json.Unmarshal(command.Ref, &ref); err != nil {
			return nil, err
		}
		argument := mcp.CompleteParamsArgument{Name: command.Argument.Name, Value: command.Argument.Value}
		return s.Complete(ctx, &mcp.CompleteParams{Ref: &ref, Argument: argument})
	case "level":
		return map[string]any{}, s.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: mcp.LoggingLevel(command.Level)})
	case "ping":
		return map[string]any{}, s.Ping(ctx, nil)
	}
	return nil, wire.ErrUnsupported
}
