import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { z } from 'zod'
import { programVersion } from '../engine/kernel/process/version.ts'
import { SCOPES, type Scope } from '../engine/store/secrets.ts'
import { ANSWERS, type AnswerName } from './answers.ts'
import { OPENAPI_PATH, type OpenApiAnswer } from './document.ts'
import { EXAMPLES } from './openapi-examples.ts'
import { HEADERS, headersOf, type Json, refusalResponses, refusals } from './openapi-responses.ts'
import { LIMIT_DEFAULT, LIMIT_MAX, OFFSET_MAX } from './page.ts'
import { REQUESTS_PER_WINDOW, WINDOW_MS } from './rate-limit/rate-limit.ts'

/** The part of an endpoint that the document describes, from the route table. */
export type Endpoints = Readonly<Record<string, { readonly scope: Scope; readonly paged: boolean }>>

interface About {
  /** Used for the tag, the operations and the schema. */
  readonly name: AnswerName
  readonly summary: string
  readonly description: string
}

const PAGING = `It has pages of \`limit\` elements from \`offset\` on; a page with fewer than \`limit\` elements is the last. Every answer has an \`ETag\` that is \
the same for all pages of one state, except that it ends with \`-gzip\` if the answer is compressed. A client that sends the tag of any page as \`If-Match\` with the following requests gets 412 when the data changed in \
between, starts again at offset 0, and never mixes two states.`

const ABOUT: Readonly<Record<string, About>> = {
  '/api/v1/scores': {
    name: 'Scores',
    summary: 'The latest score of each framework',
    description: `One score of each framework that has a completed assessment, of the latest one, in the order of the frameworks: ${z.toJSONSchema(ANSWERS.FrameworkId).enum?.join(', ')}. \
It is not paged. No query parameter is accepted: none has an effect, and none is refused.`,
  },
  '/api/v1/recommendations': {
    name: 'Recommendations',
    summary: 'What to do, the highest priority first',
    description: `The recommendations of all completed assessments, of all frameworks: a client filters by \`framework_id\`. The order is fixed: \`priority\` \
ascending, and of equal priority the newest first. ${PAGING}`,
  },
  '/api/v1/discovery': {
    name: 'Discovery',
    summary: 'The latest scan and its AI platforms',
    description: `The most recent completed scan, whole on every page, and the platforms that it detected. The order is fixed: \`confidence\` descending, and of \
equal confidence by name. Earlier scans are not available. Without a completed scan \`scan\` is null and \`platforms\` is empty. Only the list of platforms is paged. ${PAGING}`,
  },
  '/api/v1/assessments': {
    name: 'Assessments',
    summary: 'Completed assessments, the last one first',
    description: `All completed assessments with the scores of their categories; those in progress are not shown. The order is fixed: the last completed first. ${PAGING}`,
  },
}

const TAGS = [
  { name: 'Scores', description: 'Scores of an organization for each framework.' },
  { name: 'Recommendations', description: 'Actions that improve the scores.' },
  { name: 'Discovery', description: 'AI platforms that the organization uses.' },
  { name: 'Assessments', description: 'The basis of the scores.' },
  { name: 'Document', description: 'This document.' },
] as const

const PARAMETERS = {
  Limit: {
    name: 'limit',
    in: 'query',
    description: 'Maximum number of elements on the page. A whole number in decimal digits, given once.',
    schema: { type: 'integer', minimum: 1, maximum: LIMIT_MAX, default: LIMIT_DEFAULT },
    example: 50,
  },
  Offset: {
    name: 'offset',
    in: 'query',
    description:
      'Elements before the page. A whole number in decimal digits, given once. Beyond the end of the list the page is empty.',
    schema: { type: 'integer', minimum: 0, maximum: OFFSET_MAX, default: 0 },
    example: 100,
  },
  'If-None-Match': {
    name: 'If-None-Match',
    in: 'header',
    description:
      'Entity tags that the client has, comma-separated, or `*`: the answer is 304 while the data is unchanged.',
    schema: { type: 'string' },
    example: '"5f1d7a9c0b3e4826a1c9d7e2f4b60835"',
  },
  'If-Match': {
    name: 'If-Match',
    in: 'header',
    description: 'Entity tags, comma-separated, or `*`: the answer is 412 if the data is in another state.',
    schema: { type: 'string' },
    example: '"5f1d7a9c0b3e4826a1c9d7e2f4b60835"',
  },
  'Accept-Encoding': {
    name: 'Accept-Encoding',
    in: 'header',
    description:
      'If this field names gzip, a list of 1 KiB or more is compressed if its page begins at a multiple of 100 and ends after 100 elements or with the list, as without parameters.',
    schema: { type: 'string' },
    example: 'gzip',
  },
} as const

const parameter = (name: keyof typeof PARAMETERS): Json => ({ $ref: `#/components/parameters/${name}` })
const REQUEST_HEADERS = [parameter('If-None-Match'), parameter('If-Match'), parameter('Accept-Encoding')]

/**
 * Returns the OpenAPI 3.1 document of the API. Schemas are those that tests validate responses
 * against. Paths and scopes come from the route table. https://spec.openapis.org/oas/v3.1.0
 */
export function openApiDocument(endpoints: Endpoints, salesEmail: string): Json {
  const contact = z.email().safeParse(salesEmail).success ? { name: 'Sales', email: salesEmail } : { name: salesEmail }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Security Posture Service',
      summary: "Read-only access to an organization's security-assessment data.",
      description: `HTTPS only, server to server: there is no CORS. Bodies are JSON, times are UTC to the second. A key may make ${REQUESTS_PER_WINDOW} requests in \
any 60 seconds, over all paths. Checks are made in this order: path (404), method (405), key (401), plan and scope (403), rate (429), parameters (400), \
\`If-Match\` (412), \`If-None-Match\` (304). Parameters of other names have no effect. A request that is not valid HTTP is rejected before these checks, without a JSON body.`,
      version: programVersion(),
      contact,
      license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
    },
    servers: [
      {
        url: 'https://{host}:{port}',
        description: 'The address of your installation.',
        variables: {
          host: { default: 'posture.internal', description: 'Name of the host, as in its certificate.' },
          port: { default: '8443', description: 'Port of the REST API, as --api-port sets it.' },
        },
      },
    ],
    tags: TAGS,
    security: [{ ApiKey: [] }],
    paths: {
      ...Object.fromEntries(Object.entries(endpoints).map(([path, endpoint]) => [path, pathItem(path, endpoint)])),
      [OPENAPI_PATH]: documentItem(),
    },
    components: {
      schemas: answerSchemas(),
      responses: responses(salesEmail),
      parameters: PARAMETERS,
      headers: HEADERS,
      securitySchemes: { ApiKey: apiKeyScheme(endpoints) },
    },
  }
}

/** Returns the document as served: ready bytes and their entity tag. */
export function openApiAnswer(endpoints: Endpoints, salesEmail: string): OpenApiAnswer {
  const body = Buffer.from(JSON.stringify(openApiDocument(endpoints, salesEmail)))
  return { body, gzip: gzipSync(body), tag: `"${createHash('sha256').update(body).digest('hex').slice(0, 32)}"` }
}

function pathItem(path: string, { scope, paged }: Endpoints[string]): Json {
  const about = ABOUT[path]
  assert(about !== undefined, `${path}: api/openapi.ts has no description`)
  const { name, summary, description } = about
  const common = {
    tags: [name],
    security: [{ ApiKey: [scope] }],
    parameters: [...(paged ? [parameter('Limit'), parameter('Offset')] : []), ...REQUEST_HEADERS],
  }
  const ok = {
    description: `${ANSWERS[name].description} Needs the scope \`${scope}\`.`,
    headers: headersOf(200, true),
    content: {
      'application/json': { schema: { $ref: `#/components/schemas/${name}` }, examples: EXAMPLES[path] },
    },
  }
  const wrong = [304, 400, 401, 403, 404, 405, 412, 429, 500]
  return {
    get: { operationId: `get${name}`, summary, description, ...common, responses: operationResponses(ok, wrong) },
    head: {
      operationId: `head${name}`,
      summary: `${summary}: headers only`,
      description: 'The same answer as to GET, without its body.',
      ...common,
      responses: operationResponses(withoutBody(ok), wrong, 'Head'),
    },
  }
}

/**
 * The document contains no data, so this is the only path without a key. Requests for it count
 * against the address, like those with an invalid key.
 */
function documentItem(): Json {
  const ok = {
    description: 'This document.',
    headers: headersOf(200, false),
    content: {
      'application/json': {
        schema: {
          type: 'object',
          required: ['openapi', 'info', 'paths'],
          properties: { openapi: { type: 'string' }, info: { type: 'object' }, paths: { type: 'object' } },
        },
        examples: {
          document: {
            summary: 'The beginning of it',
            value: {
              openapi: '3.1.0',
              info: { title: 'Security Posture Service', version: programVersion() },
              paths: {},
            },
          },
        },
      },
    },
  }
  const common = {
    tags: ['Document'],
    security: [],
    parameters: [parameter('If-None-Match'), parameter('Accept-Encoding')],
  }
  const withBody = {
    description: 'The request has a body; the connection is closed.',
    headers: headersOf(400, false),
    content: {
      'application/json': {
        schema: { $ref: '#/components/schemas/Error' },
        examples: { body: { summary: 'A body', value: { error: 'Invalid request: expected no body' } } },
      },
    },
  }
  const unchanged = { description: 'The client has this document already.', headers: headersOf(304, false) }
  const item = (method: 'get' | 'head'): Json => ({
    operationId: `${method}OpenApi`,
    summary: method === 'get' ? 'The API as OpenAPI 3.1' : 'The API as OpenAPI 3.1: headers only',
    description: `What the service answers, as this release does. It needs no key; of one address ${REQUESTS_PER_WINDOW} requests in ${WINDOW_MS / 1000} seconds are answered.`,
    ...common,
    responses: {
      200: method === 'get' ? ok : withoutBody(ok),
      304: unchanged,
      400: method === 'get' ? withBody : withoutBody(withBody),
      ...operationResponses(undefined, [404, 405, 429, 500], method === 'get' ? '' : 'Head'),
    },
  })
  return { get: item('get'), head: item('head') }
}

function withoutBody({ content: _, ...rest }: Json): Json {
  return rest
}

function operationResponses(ok: Json | undefined, wrong: readonly number[], suffix: '' | 'Head' = ''): Json {
  const named = new Map(refusals('').map(({ status, component }) => [status, component]))
  const entries = wrong.map((status) => {
    const component = status === 304 ? 'NotModified' : `${named.get(status)}${suffix}`
    return [String(status), { $ref: `#/components/responses/${component}` }]
  })
  return { ...(ok ? { 200: ok } : {}), ...Object.fromEntries(entries) }
}

function responses(salesEmail: string): Json {
  const refused = refusalResponses(salesEmail)
  const ofHead = Object.entries(refused).map(([name, response]) => [`${name}Head`, withoutBody(response)])
  const notModified = { description: '`If-None-Match` names the present state.', headers: headersOf(304, true) }
  return { NotModified: notModified, ...refused, ...Object.fromEntries(ofHead) }
}

function apiKeyScheme(endpoints: Endpoints): Json {
  const pathsOf = (scope: Scope): string =>
    Object.keys(endpoints)
      .filter((path) => endpoints[path]?.scope === scope)
      .map((path) => `GET ${path}`)
      .join(', ')
  const scopes = SCOPES.map((scope) => `- \`${scope}\`: ${pathsOf(scope)}`).join('\n')
  return {
    type: 'apiKey',
    in: 'header',
    name: 'X-API-Key',
    description: `\`svc_pk_\` and 64 hexadecimal digits. A key belongs to one organization, which must be on the Enterprise plan, and holds one or more scopes:\n\n${scopes}\n\n\
It is sent in this header and nowhere else: never in a URL, and never from a browser.`,
  }
}

/**
 * Returns the response schemas as components that refer to each other (JSON Schema draft 2020-12,
 * as in OpenAPI 3.1).
 */
function answerSchemas(): Json {
  const registry = z.registry<{ id: string }>()
  for (const [id, schema] of Object.entries(ANSWERS)) registry.add(schema, { id })
  const { schemas } = z.toJSONSchema(registry, {
    uri: (id) => `#/components/schemas/${id}`,
    // Replaces the library's patterns, which also check the calendar. A format and the number of
    // digits are easier to read.
    override: ({ jsonSchema }) => {
      if (jsonSchema.format === 'date-time') jsonSchema.pattern = '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}Z$'
      if (jsonSchema.format === 'uuid') delete jsonSchema.pattern
    },
  })
  return Object.fromEntries(
    Object.entries(schemas).map(([id, { $schema: _, $id: __, ...schema }]) => [id, { title: id, ...schema }]),
  )
}
