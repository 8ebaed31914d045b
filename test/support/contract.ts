import assert from 'node:assert/strict'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { ANSWERS, type AnswerName } from '../../api/answers.ts'
import type { Json } from '../../api/openapi-responses.ts'
import type { Answer } from './https.ts'

/*
 * Checks that the OpenAPI document describes an answer: status, header fields, body. References are
 * resolved as a client resolves them. The check is stricter than the document in one point:
 * `metadata` has no fields yet that only a later version may add.
 */
interface Documented {
  readonly headers?: Readonly<Record<string, Json>>
  readonly content?: Readonly<Record<string, { readonly schema: Json }>>
}

/** Header fields of the transport, which the document need not describe. */
const TRANSPORT_FIELDS = ['content-type', 'content-length', 'date', 'connection', 'keep-alive']
const METHODS_DOCUMENTED = ['get', 'head']

/** @throws AssertionError with the documented and the actual value. */
export function assertContract(document: Json, method: string, path: string, answer: Answer): void {
  const place = `${method} ${path} ${answer.status}`
  const documented = responseOf(document, method, path.split('?')[0] ?? '', answer.status)
  assert.ok(documented, `${place}: the document lacks this status`)
  assertHeaders(document, documented.headers ?? {}, answer, place)
  const { content } = documented
  if (content === undefined || method === 'HEAD') {
    assert.equal(content, undefined, `${place}: the document has a body`)
    assert.equal(answer.text, '', `${place}: a body that the document lacks`)
    return
  }
  assert.equal(answer.headers['content-type'], Object.keys(content)[0], place)
  const schema = content['application/json']?.schema ?? {}
  assert.deepEqual(checkOf(document).strict(schema, answer.body), [], `${place}: ${answer.text.slice(0, 1000)}`)
  const name = String(schema['$ref'] ?? '').replace('#/components/schemas/', '')
  if (name !== '') ANSWERS[name as AnswerName].parse(answer.body)
}

/** Schema errors of a value, as a client sees them that accepts new fields in metadata. */
export function schemaErrors(document: Json, name: AnswerName, value: unknown): string[] {
  return checkOf(document).extensible({ $ref: `#/components/schemas/${name}` }, value)
}

/**
 * Methods that are not documented use the response of GET. Unknown paths use the response of any
 * documented path.
 */
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
    assert.deepEqual(checkOf(document).strict(schema, value), [], `${place}: ${name}: ${text}`)
  }
  const others = Object.keys(answer.headers).filter((name) => !reported.has(name))
  assert.deepEqual(others, [], `${place}: fields that the document lacks`)
}

/** The value that a reference within the document points to, or the value itself. */
function resolved(document: Json, value: Json): Json {
  const reference = value['$ref']
  if (typeof reference !== 'string') return value
  const steps = reference.replace(/^#\//, '').split('/')
  return steps.reduce<Json>((at, step) => at[step] as Json, document)
}

interface Check {
  /** Allows only the fields of this version. */
  strict(schema: Json, value: unknown): string[]
  /** Also allows the fields that later versions may add. */
  extensible(schema: Json, value: unknown): string[]
}

const checks = new WeakMap<Json, Check>()

function checkOf(document: Json): Check {
  const known = checks.get(document)
  if (known !== undefined) return known
  const { schemas } = document['components'] as { schemas: Json }
  const check = { strict: validator(closed(schemas)), extensible: validator(schemas) }
  checks.set(document, check)
  return check
}

/** The same schemas, but objects with named fields accept no additional ones. */
function closed(schemas: Json): Json {
  return JSON.parse(JSON.stringify(schemas), (_, value) =>
    value?.properties !== undefined && value.type === 'object' ? { ...value, additionalProperties: false } : value,
  ) as Json
}

const DOCUMENT_ID = 'https://document.invalid/'

function validator(schemas: Json): Check['strict'] {
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
