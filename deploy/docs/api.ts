import { EXAMPLES } from '../../api/openapi-examples.ts'
import { refusals } from '../../api/openapi-responses.ts'
import { ROUTES } from '../../api/routes.ts'
import { code, codeBlock, markdownTable } from './markdown.ts'

/** The tables of docs/reference/api.md: routes, error responses, and a sample of each path. */
export function pathsTable(): string {
  const rows = Object.entries(ROUTES).map(([path, { scope, paged }]) => [code(path), code(scope), paged ? 'yes' : 'no'])
  return markdownTable(['Path', 'Scope', 'Paged'], rows)
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
