<?php
/*
 * An MCP server that writes JSON as PHP does: json_encode escapes slashes and what is not ASCII, in keys, too. No package is needed.
 *
 * Usage: server.php legacy|modern for stdio; over HTTP as the router of `ERA=legacy php -S ADDRESS server.php`.
 */
const SCHEMA = ['type' => 'object', 'properties' => ['café' => ['type' => 'string']]];
const META = ['café' => 'é/è', 'x.example/ключ' => [1, 'ü'], 'twice' => 1];
$era = $argv[1] ?? getenv('ERA');

function call(array $params, string $era): array
{
    if ($params['name'] === 'fail') {
        return ['error' => ['code' => 7, 'message' => 'zu groß', 'data' => ['größe' => 1, 'x/y' => ['é' => 2]]]];
    }
    if ($params['name'] === 'ask' && !isset($params['inputResponses']) && $era === 'modern') {
        $question = ['mode' => 'form', 'message' => 'Größe?', 'requestedSchema' => SCHEMA];
        $requests = ['größe/1' => ['method' => 'elicitation/create', 'params' => $question]];
        return ['result' => ['resultType' => 'input_required', 'inputRequests' => $requests, '_meta' => META]];
    }
    $meta = array_keys($params['_meta'] ?? []);
    sort($meta);
    $said = ['arguments' => $params['arguments'] ?? [], 'answers' => $params['inputResponses'] ?? [], 'meta' => $meta];
    $content = [['type' => 'text', 'text' => json_encode($said)]];
    return ['result' => ['content' => $content, 'structuredContent' => ['café' => 1], '_meta' => META]];
}

function answer(string $method, array $params, string $era): array
{
    if ($method === 'initialize' && $era === 'legacy') {
        $info = ['name' => 'é', 'version' => '1'];
        return ['result' => ['protocolVersion' => '2025-11-25', 'capabilities' => ['tools' => new stdClass()], 'serverInfo' => $info]];
    }
    if ($method === 'server/discover' && $era === 'modern') {
        return ['result' => ['supportedVersions' => ['2026-07-28'], 'capabilities' => ['tools' => new stdClass()], '_meta' => META]];
    }
    if ($method === 'tools/list') {
        $tool = fn ($name) => ['name' => $name, 'inputSchema' => SCHEMA, '_meta' => META];
        return ['result' => ['tools' => array_map($tool, ['echo', 'fail', 'ask'])]];
    }
    if ($method === 'tools/call') {
        return call($params, $era);
    }
    return $method === 'ping' ? ['result' => new stdClass()] : ['error' => ['code' => -32601, 'message' => 'Method not found']];
}

/** The answer to one message, as text; null to a notification. */
function reply(string $text, string $era): ?string
{
    $message = json_decode($text, true);
    if (!isset($message['method'], $message['id'])) {
        return null;
    }
    $body = answer($message['method'], $message['params'] ?? [], $era);
    if (is_array($body['result'] ?? null) && $era === 'modern') {
        $body['result'] += ['resultType' => 'complete', 'ttlMs' => 0, 'cacheScope' => 'private'];
    }
    return json_encode(['jsonrpc' => '2.0', 'id' => $message['id']] + $body);
}

if (PHP_SAPI === 'cli') {
    while (($line = fgets(STDIN)) !== false) {
        $said = reply($line, $era);
        if ($said !== null) {
            fwrite(STDOUT, $said . "\n");
        }
    }
    exit;
}
if ($_SERVER['REQUEST_METHOD'] !== 'POST') {
    http_response_code(405);
    return;
}
$said = reply(file_get_contents('php://input'), $era);
http_response_code($said === null ? 202 : 200);
header('Content-Type: application/json');
echo $said ?? '';
