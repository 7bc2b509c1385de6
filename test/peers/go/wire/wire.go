// Package wire is the command loop of a host (test/peers/README.md): one JSON command per line on stdin, one answer per line on stdout.
package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"
)

// Command is what the runner asks; each verb uses some of it.
type Command struct {
	ID        int             `json:"id"`
	Do        string          `json:"do"`
	Transport string          `json:"transport"`
	Capable   bool            `json:"capable"`
	Program   string          `json:"command"`
	Args      []string        `json:"args"`
	URL       string          `json:"url"`
	Of        string          `json:"of"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Progress  bool            `json:"progress"`
	TimeoutMs int             `json:"timeoutMs"`
	URI       string          `json:"uri"`
	Ref       json.RawMessage `json:"ref"`
	Argument  struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"argument"`
	Level string `json:"level"`
	Call  int    `json:"call"`
}

// Strings are the arguments of a prompt.
func (c Command) Strings() map[string]string {
	found := map[string]string{}
	_ = json.Unmarshal(c.Arguments, &found)
	return found
}

// ErrUnsupported says that the SDK has no such request.
var ErrUnsupported = errors.New("unsupported")

// Host is one connection; Do serves every verb but connect, cancel and close.
type Host interface {
	Do(ctx context.Context, command Command) (any, error)
	Close() error
}

var out sync.Mutex

func emit(message any) {
	line, err := json.Marshal(message)
	if err != nil {
		line, _ = json.Marshal(map[string]any{"event": "broken", "params": err.Error()})
	}
	out.Lock()
	defer out.Unlock()
	_, _ = os.Stdout.Write(append(line, '\n'))
}

// Event tells the runner what came without being asked for.
func Event(kind string, params any) { emit(map[string]any{"event": kind, "params": params}) }

// Asked tells the runner that the server asks.
func Asked(method string, params any) {
	emit(map[string]any{"event": "asked", "method": method, "params": params})
}

type refused struct {
	Code    *int            `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// refusal finds the JSON-RPC error in a chain: SDKs keep its type to themselves, but it marshals with its code.
func refusal(err error) *refused {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		var found refused
		text, _ := json.Marshal(inner)
		if json.Unmarshal(text, &found) == nil && found.Code != nil {
			return &found
		}
	}
	return nil
}

// IsRefusal says whether the other side answered with a JSON-RPC error.
func IsRefusal(err error) bool { return refusal(err) != nil }

func failure(err error) any {
	if errors.Is(err, ErrUnsupported) {
		return map[string]any{"kind": "unsupported"}
	}
	if refused := refusal(err); refused != nil {
		return refused
	}
	if errors.Is(err, context.Canceled) {
		return map[string]any{"kind": "cancelled"}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return map[string]any{"kind": "timeout"}
	}
	return map[string]any{"kind": "error", "message": err.Error()}
}

// closeWithin leaves a connection that does not close by itself: go-sdk 1.0 waits for answers to cancelled calls, which servers do not send.
func closeWithin(host Host, limit time.Duration) error {
	closed := make(chan error, 1)
	go func() { closed <- host.Close() }()
	select {
	case err := <-closed:
		return err
	case <-time.After(limit):
		return nil
	}
}

// Serve runs commands until stdin ends.
func Serve(connect func(ctx context.Context, command Command) (Host, any, error)) {
	var mutex sync.Mutex
	var host Host
	running := map[int]context.CancelFunc{}
	run := func(ctx context.Context, command Command) (any, error) {
		switch command.Do {
		case "connect":
			made, learnt, err := connect(context.Background(), command)
			host = made
			return learnt, err
		case "close":
			return nil, closeWithin(host, time.Second)
		case "cancel":
			mutex.Lock()
			defer mutex.Unlock()
			if cancel, ok := running[command.Call]; ok {
				cancel()
			}
			return nil, nil
		}
		return host.Do(ctx, command)
	}
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var command Command
		if json.Unmarshal(line, &command) != nil {
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		mutex.Lock()
		running[command.ID] = cancel
		mutex.Unlock()
		go func() {
			result, err := run(ctx, command)
			if err != nil {
				emit(map[string]any{"id": command.ID, "error": failure(err)})
			} else {
				emit(map[string]any{"id": command.ID, "result": result})
			}
			mutex.Lock()
			delete(running, command.ID)
			mutex.Unlock()
			cancel()
		}()
	}
}
