import assert from 'node:assert/strict'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { ANSWERS, type AnswerName } from '../../api/answers.ts'
import type { Json } from '../../api/openapi-responses.ts'
import type { Answer } from './https.ts'

/*
 * Whether an answer is one that the OpenAPI document tells of: status, header fields, body. The document is read as a client reads it, by its
 * references; only what it lets a later version add to `metadata` must not be there yet.
 */
interface Documented {
  readonly headers?: Readonly<Record<string, Json>>
  readonly content?: Readonly<Record<string, { readonly schema: Json }>>
}

/** Fields of the transport, which the document need not tell. */
const TRANSPORT_FIELDS = ['content-type', 'content-length', 'date', 'connection', 'keep-alive']
const METHODS_DOCUMENTED = ['get', 'head']

/** @throws AssertionError that says what the document tells, and what came. */
export function assertContract(document: Json, method: string, path: string, answer: Answer): void {
  const place = `${method} ${path} ${answer.status}`
  const documented = responseOf(document, method, path.split('?')[0] ?? '', answer.status)
  assert.ok(documented, `${place}: the document does not tell of this status`)
  assertHeaders(document, documented.headers ?? {}, answer, place)
  const { content } = documented
  if (content === undefined || method === 'HEAD') {
    assert.equal(content, undefined, `${place}: the document tells of a body`)
    assert.equal(answer.text, '', `${place}: a body that the document does not tell of`)
    return
  }
  assert.equal(answer.headers['content-type'], Object.keys(content)[0], place)
  const schema = content['application/json']?.schema ?? {}
  assert.deepEqual(checkOf(document).asNow(schema, answer.body), [], `${place}: ${answer.text.slice(0, 1000)}`)
  const name = String(schema['$ref'] ?? '').replace('#/components/schemas/', '')
  if (name !== '') ANSWERS[name as AnswerName].parse(answer.body)
}

/** What a value has against the schema of this name, for a client that knows that metadata may grow. */
export function schemaFaults(document: Json, name: AnswerName, value: unknown): string[] {
  return checkOf(document).asEver({ $ref: `#/components/schemas/${name}` }, value)
}

/** GET tells what other methods get; any documented path tells what another path gets. */
function responseOf(document: Json, method: string, path: string, status: number): Documented | undefined {
  const items = document['paths'] as Readonly<Record<string, Readonly<Record<string, { responses: Json }>>>>
  const item = Object.hasOwn(items, path) ? items[path] : status === 404 ? Object.values(items)[0] : undefined
  const lower = method.toLowerCase()
  const operation = item?.[METHODS_DOCUMENTED.includes(lower) ? lower : 'get']
  const response = operation?.responses[String(status)]
  return response === undefined ? undefined : (resolved(document, response as Json) as Documented)
}

function assertHeaders(
  document: Json,
  documented: Readonly<Record<string, Json>>,
  answer: Answer,
  place: string,
): void {
  const reported = new Set(TRANSPORT_FIELDS)
  for (const [name, reference] of Object.entries(documented)) {
    const header = resolved(document, reference)
    const schema = header['schema'] as Json
    const text = answer.headers[name.toLowerCase()]
    reported.add(name.toLowerCase())
    if (text === undefined) {
      assert.notEqual(header['required'], true, `${place}: ${name} is missing`)
      continue
    }
    const value = schema['type'] === 'integer' ? Number(text) : text
    assert.deepEqual(checkOf(document).asNow(schema, value), [], `${place}: ${name}: ${text}`)
  }
  const others = Object.keys(answer.headers).filter((name) => !reported.has(name))
  assert.deepEqual(others, [], `${place}: fields that the document does not tell of`)
}

/** What a reference within the document leads to, or the value itself. */
function resolved(document: Json, value: Json): Json {
  const reference = value['$ref']
  if (typeof reference !== 'string') return value
  const steps = reference.replace(/^#\//, '').split('/')
  return steps.reduce<Json>((at, step) => at[step] as Json, document)
}

interface Check {
  /** With nothing but what this version has. */
  asNow(schema: Json, value: unknown): string[]
  /** With what later versions may add. */
  asEver(schema: Json, value: unknown): string[]
}

const checks = new WeakMap<Json, Check>()

function checkOf(document: Json): Check {
  const known = checks.get(document)
  if (known !== undefined) return known
  const { schemas } = document['components'] as { schemas: Json }
  const check = { asNow: validator(closed(schemas)), asEver: validator(schemas) }
  checks.set(document, check)
  return check
}

/** The same schemas without what may be added to an object whose fields are named. */
function closed(schemas: Json): Json {
  return JSON.parse(JSON.stringify(schemas), (_, value) =>
    value?.properties !== undefined && value.type === 'object' ? { ...value, additionalProperties: false } : value,
  ) as Json
}

const DOCUMENT_ID = 'https://document.invalid/'

function validator(schemas: Json): Check['asNow'] {
  const ajv = new Ajv2020({ allErrors: true, strict: true })
  formats.default(ajv)
  ajv.addVocabulary(['components'])
  ajv.addSchema({ $id: DOCUMENT_ID, components: { schemas } })
  const compiled = new Map<string, ValidateFunction>()
  return (schema, value) => {
    const absolute = JSON.stringify(schema).replaceAll('"#/', `"${DOCUMENT_ID}#/`)
    const validate = compiled.get(absolute) ?? ajv.compile(JSON.parse(absolute) as Json)
    compiled.set(absolute, validate)
    if (validate(value)) return []
    return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
  }
}
