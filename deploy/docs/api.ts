import { openApiDocument } from '../../api/openapi.ts'
import { EXAMPLES } from '../../api/openapi-examples.ts'
import { type Json, refusals } from '../../api/openapi-responses.ts'
import { ROUTES } from '../../api/routes.ts'
import { code, codeBlock, markdownTable } from './markdown.ts'

/**
 * The tables of docs/reference/api.md: routes, error responses, and schemas as in the OpenAPI
 * document.
 */
export function pathsTable(): string {
  const rows = Object.entries(ROUTES).map(([path, { scope, paged }]) => [
    code(path),
    code(scope),
    membersOf(path),
    paged ? 'yes' : 'no',
  ])
  return markdownTable(['Path', 'Scope', 'Answer', 'Paged'], rows)
}

export function refusalsTable(): string {
  const rows = refusals('...').map(({ status, when, message }) => [String(status), when, message])
  return markdownTable(['Status', 'When', 'Message'], rows)
}

/**
 * A request and response for each path, from the examples of the OpenAPI document. Tests validate
 * them against the schemas.
 */
export function answerSamples(): Record<string, () => string> {
  return Object.fromEntries(
    Object.entries(EXAMPLES).map(([path, examples]) => [
      `sample ${path}`,
      () => sampleOf(path, Object.values(examples)[0]?.value),
    ]),
  )
}

function sampleOf(path: string, answer: unknown): string {
  const command = `curl --cacert data/service/tls/certificate.pem -H "X-API-Key: $SVC_API_KEY" https://localhost:8443${path}`
  return `${codeBlock('sh', command)}\n\n${codeBlock('json', JSON.stringify(answer, undefined, 2))}`
}

/** A heading, a description and the fields for each object of a response. */
export function fieldTables(): string {
  const objects = Object.entries(SCHEMAS).filter(([, schema]) => schema.properties !== undefined)
  return objects
    .map(([name, { description, properties = {}, required = [] }]) => {
      const rows = Object.entries(properties).map(([field, schema]) => [
        code(field),
        typeOf(schema) + (required.includes(field) ? '' : ', may be absent'),
        schema.description ?? descriptionAfter(schema),
      ])
      return `### ${name}\n\n${description}\n\n${markdownTable(['Field', 'Type', 'Meaning'], rows)}`
    })
    .join('\n\n')
}

/** The subset of JSON Schema in the schemas of responses. */
interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly format?: string
  readonly description?: string
  readonly const?: string
  readonly enum?: readonly string[]
  readonly anyOf?: readonly Schema[]
  readonly items?: Schema
  readonly minimum?: number
  readonly exclusiveMinimum?: number
  readonly maximum?: number
  readonly maxItems?: number
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: Schema | false
}

const SCHEMAS = (openApiDocument(ROUTES, '...')['components'] as Json)['schemas'] as Readonly<Record<string, Schema>>
/** Longer value lists are documented elsewhere: platform types in docs/reference/registry.md. */
const VALUES_SHOWN_MAX = 8

function membersOf(path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1)
  const schema = Object.entries(SCHEMAS).find(([id]) => id.toLowerCase() === name)?.[1]
  const members = Object.entries(schema?.properties ?? {}).map(([field, each]) => `${field}: ${typeOf(each)}`)
  return `{ ${members.join(', ')} }`
}

function nameOf({ $ref = '' }: Schema): string {
  return $ref.replace('#/components/schemas/', '')
}

function descriptionAfter(schema: Schema): string {
  return SCHEMAS[nameOf(schema)]?.description ?? ''
}

function typeOf(schema: Schema): string {
  const { type = '', format, items, anyOf, additionalProperties } = schema
  if (schema.$ref !== undefined) {
    const named = SCHEMAS[nameOf(schema)]
    return named?.properties === undefined ? typeOf(named ?? {}) : nameOf(schema)
  }
  if (anyOf !== undefined) return anyOf.map(typeOf).join(' or ')
  if (schema.const !== undefined) return code(schema.const)
  if (schema.enum !== undefined) {
    return schema.enum.length > VALUES_SHOWN_MAX
      ? `one of ${schema.enum.length} words`
      : schema.enum.map(code).join(', ')
  }
  if (items !== undefined) return `list of ${typeOf(items)}${schema.maxItems ? `, at most ${schema.maxItems}` : ''}`
  if (type === 'object' && additionalProperties) return `object of ${typeOf(additionalProperties)}`
  if (type === 'string') return format ?? type
  return type + boundsOf(schema)
}

function boundsOf({ minimum, exclusiveMinimum, maximum }: Schema): string {
  const upTo = maximum === undefined || maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum
  if (exclusiveMinimum !== undefined) return ` above ${exclusiveMinimum}, up to ${upTo}`
  if (minimum === undefined) return ''
  return upTo === undefined ? ` from ${minimum}` : ` ${minimum} to ${upTo}`
}
