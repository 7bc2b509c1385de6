<?php
/*
 * An MCP host that writes JSON as PHP does: json_encode escapes slashes and what is not ASCII, in keys, too. No package is needed.
 *
 * Usage: host.php legacy|modern [URL]. Without a URL it speaks on stdin and stdout. Prints what it got on stderr, as one line of JSON.
 */
[$era, $url] = [$argv[1], $argv[2] ?? null];
const PREFIX = 'io.modelcontextprotocol/';
const OWN = ['café' => 'é/è', 'x.example/ключ' => 1];
$session = [];
$id = 0;

/** Sends one message; returns the text of its answer, or null. */
function send(array $message): ?string
{
    global $era, $url, $session;
    $text = json_encode($message);
    if ($url === null) {
        fwrite(STDOUT, $text . "\n");
        return isset($message['id']) ? fgets(STDIN) : null;
    }
    $headers = ['Content-Type: application/json', 'Accept: application/json, text/event-stream', ...$session];
    if ($era === 'modern') {
        array_push($headers, 'MCP-Protocol-Version: 2026-07-28', "Mcp-Method: {$message['method']}");
        if (isset($message['params']['name'])) {
            $headers[] = "Mcp-Name: {$message['params']['name']}";
        }
    }
    $options = ['method' => 'POST', 'header' => $headers, 'content' => $text, 'ignore_errors' => true];
    $body = file_get_contents($url, false, stream_context_create(['http' => $options]));
    foreach ($http_response_header as $line) {
        if (stripos($line, 'mcp-session-id:') === 0) {
            $session = [$line];
        }
    }
    return preg_match_all('/^data: (\{.*)$/m', $body, $data) > 0 ? end($data[1]) : $body;
}

function request(string $method, array $params = []): array
{
    global $era, $id;
    $modern = [PREFIX . 'protocolVersion' => '2026-07-28', PREFIX . 'clientCapabilities' => ['elicitation' => new stdClass()]];
    $params['_meta'] = OWN + ($era === 'modern' ? $modern : []);
    $answer = json_decode(send(['jsonrpc' => '2.0', 'id' => ++$id, 'method' => $method, 'params' => $params]), true);
    return $answer['result'] ?? $answer['error'];
}

if ($era === 'legacy') {
    $info = ['name' => 'é', 'version' => '1'];
    request('initialize', ['protocolVersion' => '2025-11-25', 'capabilities' => new stdClass(), 'clientInfo' => $info]);
    send(['jsonrpc' => '2.0', 'method' => 'notifications/initialized']);
}
$name = request('tools/list')['tools'][0]['name'];
fwrite(STDERR, json_encode([$name, request('tools/call', ['name' => $name, 'arguments' => ['café' => 'a/b']])]) . "\n");
