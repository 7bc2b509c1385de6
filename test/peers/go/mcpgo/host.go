package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"peers/wire"
)

// A modern session; listening tells that a stream was acknowledged.
type session struct {
	*client.Client
	modern    bool
	listening chan struct{}
}

// listen opens the stream again: the SDK closes the one before, and records what Subscribe asks for until then.
func (s *session) listen(filter mcp.SubscriptionFilter) {
	go func() { _ = s.Listen(context.Background(), filter) }()
	select {
	case <-s.listening:
	case <-time.After(2 * time.Second):
	}
}

type person struct{}

func (person) Elicit(_ context.Context, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	wire.Asked("elicitation/create", req.Params)
	answer := mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionAccept}
	if req.Params.Mode != "url" {
		answer.Content = map[string]any{"answer": "yes"}
	}
	return &mcp.ElicitationResult{ElicitationResponse: answer}, nil
}

func (person) CreateMessage(_ context.Context, req mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	wire.Asked("sampling/createMessage", req.CreateMessageParams)
	said := mcp.SamplingMessage{Role: mcp.RoleAssistant, Content: mcp.NewTextContent("sampled")}
	return &mcp.CreateMessageResult{SamplingMessage: said, Model: "peer-model"}, nil
}

func (person) ListRoots(context.Context, mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	wire.Asked("roots/list", map[string]any{})
	return &mcp.ListRootsResult{Roots: []mcp.Root{{URI: "file:///peer/root", Name: "peer"}}}, nil
}

func host() { wire.Serve(connect) }

func connect(ctx context.Context, command wire.Command) (wire.Host, any, error) {
	var pipe transport.Interface
	var err error
	switch command.Transport {
	case "stdio":
		pipe = transport.NewStdio(command.Program, nil, command.Args...)
	case "sse":
		pipe, err = transport.NewSSE(command.URL)
	default:
		pipe, err = transport.NewStreamableHTTP(command.URL, transport.WithContinuousListening())
	}
	if err != nil {
		return nil, nil, err
	}
	options := []client.ClientOption{}
	if command.Capable {
		options = append(options, client.WithElicitationHandler(person{}), client.WithSamplingHandler(person{}), client.WithRootsHandler(person{}))
	}
	made := client.NewClient(pipe, options...)
	listening := make(chan struct{}, 16)
	made.OnNotification(func(notification mcp.JSONRPCNotification) {
		params := notification.Params.AdditionalFields
		switch notification.Method {
		case "notifications/subscriptions/acknowledged":
			listening <- struct{}{}
		case "notifications/message":
			wire.Event("log", params)
		case "notifications/progress":
			delete(params, "progressToken")
			wire.Event("progress", params)
		case "notifications/tools/list_changed":
			wire.Event("changed", map[string]string{"list": "tools"})
		case "notifications/resources/list_changed":
			wire.Event("changed", map[string]string{"list": "resources"})
		case "notifications/prompts/list_changed":
			wire.Event("changed", map[string]string{"list": "prompts"})
		case "notifications/resources/updated":
			wire.Event("updated", map[string]any{"uri": params["uri"]})
		}
	})
	if err := made.Start(ctx); err != nil {
		return nil, nil, err
	}
	request := mcp.InitializeRequest{}
	request.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	request.Params.ClientInfo = mcp.Implementation{Name: "mcp-go-peer", Version: "1.0.0"}
	learnt, err := made.Initialize(ctx, request)
	if err != nil {
		return nil, nil, err
	}
	opened := &session{made, learnt.ProtocolVersion >= "2026", listening}
	if opened.modern {
		opened.listen(mcp.SubscriptionFilter{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true})
	}
	return opened, learnt, nil
}

func (s *session) Do(ctx context.Context, command wire.Command) (any, error) {
	switch command.Do {
	case "list":
		switch command.Of {
		case "tools":
			page, err := s.ListTools(ctx, mcp.ListToolsRequest{})
			if err != nil {
				return nil, err
			}
			return page.Tools, nil
		case "resources":
			page, err := s.ListResources(ctx, mcp.ListResourcesRequest{})
			if err != nil {
				return nil, err
			}
			return page.Resources, nil
		case "prompts":
			page, err := s.ListPrompts(ctx, mcp.ListPromptsRequest{})
			if err != nil {
				return nil, err
			}
			return page.Prompts, nil
		}
		page, err := s.ListResourceTemplates(ctx, mcp.ListResourceTemplatesRequest{})
		if err != nil {
			return nil, err
		}
		return page.ResourceTemplates, nil
	case "call":
		if command.TimeoutMs > 0 {
			limited, cancel := context.WithTimeout(ctx, time.Duration(command.TimeoutMs)*time.Millisecond)
			defer cancel()
			ctx = limited
		}
		request := mcp.CallToolRequest{}
		request.Params.Name = command.Name
		if command.Arguments != nil {
			request.Params.Arguments = command.Arguments
		}
		if command.Progress {
			request.Params.Meta = &mcp.Meta{ProgressToken: command.ID}
		}
		return s.CallTool(ctx, request)
	case "read":
		request := mcp.ReadResourceRequest{}
		request.Params.URI = command.URI
		return s.ReadResource(ctx, request)
	case "subscribe":
		request := mcp.SubscribeRequest{}
		request.Params.URI = command.URI
		err := s.Subscribe(ctx, request)
		if s.modern && err == nil {
			s.listen(s.PendingSubscriptionFilter())
		}
		return map[string]any{}, err
	case "unsubscribe":
		request := mcp.UnsubscribeRequest{}
		request.Params.URI = command.URI
		return map[string]any{}, s.Unsubscribe(ctx, request)
	case "prompt":
		request := mcp.GetPromptRequest{}
		request.Params.Name, request.Params.Arguments = command.Name, command.Strings()
		return s.GetPrompt(ctx, request)
	case "complete":
		request := mcp.CompleteRequest{}
		if err := json.Unmarshal(command.Ref, &request.Params.Ref); err != nil {
			return nil, err
		}
		request.Params.Argument.Name, request.Params.Argument.Value = command.Argument.Name, command.Argument.Value
		return s.Complete(ctx, request)
	case "level":
		request := mcp.SetLevelRequest{}
		request.Params.Level = mcp.LoggingLevel(command.Level)
		return map[string]any{}, s.SetLevel(ctx, request)
	case "ping":
		return map[string]any{}, s.Ping(ctx)
	}
	return nil, wire.ErrUnsupported
}
