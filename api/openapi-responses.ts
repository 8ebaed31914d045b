import { REQUESTS_PER_WINDOW, WINDOW_MS } from './rate-limit/rate-limit.ts'

/*
 * Statuses, header fields and error messages of every response. The error table of
 * docs/reference/api.md is generated from this file, and the contract test triggers each message.
 */
export type Json = Readonly<Record<string, unknown>>

export interface Refusal {
  readonly status: number
  /** The component that this example belongs to, the same for all refusals with this status. */
  readonly component: string
  readonly example: string
  readonly when: string
  readonly message: string
}

/** In the order of the checks. Variable parts of a message have an example value. */
export function refusals(salesEmail: string): readonly Refusal[] {
  return [
    {
      status: 404,
      component: 'NotFound',
      example: 'path',
      when: 'Unknown path. Paths are compared as sent, so a path with a trailing slash is a different path',
      message: 'Not found',
    },
    {
      status: 405,
      component: 'MethodNotAllowed',
      example: 'method',
      when: 'Method other than GET and HEAD; `Allow` names them',
      message: 'Method not allowed; expected GET, HEAD',
    },
    {
      status: 401,
      component: 'Unauthorized',
      example: 'key',
      when: '`X-API-Key` missing, malformed, unknown or revoked',
      message: 'Invalid API key',
    },
    {
      status: 403,
      component: 'Forbidden',
      example: 'plan',
      when: 'The organization is not on the Enterprise plan',
      message: `API access requires the Enterprise plan; contact ${salesEmail}`,
    },
    {
      status: 403,
      component: 'Forbidden',
      example: 'scope',
      when: 'The key does not hold the scope of the path',
      message: 'The API key does not hold the scope scores:read',
    },
    {
      status: 429,
      component: 'TooManyRequests',
      example: 'rate',
      when: `More than ${REQUESTS_PER_WINDOW} requests of the key in ${WINDOW_MS / 1000} s; \`Retry-After\` says when to try again`,
      message: 'Rate limit exceeded; try again in 30 s',
    },
    {
      status: 429,
      component: 'TooManyRequests',
      example: 'guesses',
      when: `More than ${REQUESTS_PER_WINDOW} requests from one address (IPv6: /64) in ${WINDOW_MS / 1000} s with an invalid key, or for the OpenAPI document; requests with a valid key still work`,
      message: 'Too many requests without a valid API key; try again in 30 s',
    },
    {
      status: 400,
      component: 'BadRequest',
      example: 'body',
      when: 'The request has a body; the connection is closed',
      message: 'Invalid request: expected no body',
    },
    {
      status: 400,
      component: 'BadRequest',
      example: 'limit',
      when: '`limit` is out of range, not a whole number, or given twice',
      message: 'Invalid limit: expected a whole number from 1 to 100',
    },
    {
      status: 400,
      component: 'BadRequest',
      example: 'offset',
      when: '`offset` is out of range, not a whole number, or given twice',
      message: 'Invalid offset: expected a whole number from 0 to 9007199254740991',
    },
    {
      status: 412,
      component: 'PreconditionFailed',
      example: 'changed',
      when: '`If-Match` names a state other than the current one',
      message: 'The data changed since the page that If-Match names; start again at offset 0',
    },
    {
      status: 500,
      component: 'InternalError',
      example: 'fault',
      when: 'An internal error of the service; its log has the details',
      message: 'Internal error',
    },
  ]
}

const fixed = (value: string, description: string): Json => ({
  description,
  required: true,
  schema: { type: 'string', const: value },
})
const seconds = (description: string, example: number): Json => ({
  description,
  required: true,
  schema: { type: 'integer', minimum: 0, maximum: WINDOW_MS / 1000 },
  example,
})

/** Header fields, as components with their own names. */
export const HEADERS: Readonly<Record<string, Json>> = {
  'Cache-Control': fixed('private, no-cache', 'An answer is for the holder of the key, and is revalidated.'),
  Vary: {
    description: 'What the answer depends on.',
    required: true,
    schema: { type: 'string' },
    example: 'X-API-Key, Accept-Encoding',
  },
  'X-Content-Type-Options': fixed('nosniff', 'The body is JSON and nothing else.'),
  'Content-Security-Policy': fixed("default-src 'none'", 'Nothing in the body may be loaded or run.'),
  'Strict-Transport-Security': {
    ...fixed('max-age=31536000', 'Present if the service has the setting `--hsts`.'),
    required: false,
  },
  'WWW-Authenticate': fixed('Bearer realm="X-API-Key"', 'The field that must have a valid key.'),
  ETag: {
    description:
      'Identifies the current state of the whole list: it is the same for all pages, and changes when the data changes. Answers with gzip have `-gzip` after the same digits; both identify the same state.',
    required: true,
    schema: { type: 'string', pattern: '^"[0-9a-f]{32}(-gzip)?"$' },
    example: '"5f1d7a9c0b3e4826a1c9d7e2f4b60835"',
  },
  'RateLimit-Limit': {
    description: `Requests of one key in any ${WINDOW_MS / 1000} seconds.`,
    required: true,
    schema: { type: 'integer', const: REQUESTS_PER_WINDOW },
  },
  'RateLimit-Remaining': {
    description: 'Requests that the key may still make. On a node of a cluster, at least this many.',
    required: true,
    schema: { type: 'integer', minimum: 0, maximum: REQUESTS_PER_WINDOW },
    example: 42,
  },
  'RateLimit-Reset': seconds('Seconds until one more request is allowed.', 17),
  'Content-Encoding': {
    description: 'Present if the body is compressed.',
    required: false,
    schema: { type: 'string', const: 'gzip' },
  },
  'Retry-After': seconds('Seconds until a request will be accepted.', 30),
  Allow: fixed('GET, HEAD', 'The methods of every path.'),
}

const ALWAYS = [
  ...['Cache-Control', 'Vary', 'X-Content-Type-Options', 'Content-Security-Policy', 'Strict-Transport-Security'],
] as const
const RATE = ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'] as const
/** Set after the rate limit, which the document itself does not have. */
const OF_STATUS: Readonly<Record<number, readonly string[]>> = {
  200: [...ALWAYS, 'ETag', 'Content-Encoding', ...RATE],
  304: [...ALWAYS, 'ETag', ...RATE],
  400: [...ALWAYS, ...RATE],
  401: [...ALWAYS, 'WWW-Authenticate'],
  405: [...ALWAYS, 'Allow'],
  412: [...ALWAYS, 'ETag', ...RATE],
  429: [...ALWAYS, ...RATE, 'Retry-After'],
}

/**
 * Returns the header fields of a response with this status. `rated` is true if the path counts
 * requests.
 */
export function headersOf(status: number, rated: boolean): Json {
  const names = (OF_STATUS[status] ?? ALWAYS).filter((name) => rated || !(RATE as readonly string[]).includes(name))
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

/**
 * Returns one response per error status, with all its cases as examples. The key is the component's
 * name.
 */
export function refusalResponses(salesEmail: string): Readonly<Record<string, Json>> {
  const responses: Record<string, { description: string; headers: Json; examples: Record<string, Json> }> = {}
  for (const { status, component, example, when, message } of refusals(salesEmail)) {
    responses[component] ??= { description: '', headers: headersOf(status, true), examples: {} }
    const response = responses[component]
    response.description += response.description === '' ? `${when}.` : ` Or: ${when}.`
    response.examples[example] = { summary: when, value: { error: message } }
  }
  return Object.fromEntries(
    Object.entries(responses).map(([name, { description, headers, examples }]) => [
      name,
      {
        description,
        headers,
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' }, examples } },
      },
    ]),
  )
}
