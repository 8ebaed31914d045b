import { type HttpRequest, type HttpResponse, refuse } from '../http/port.ts'
import type { Store } from '../store/store.ts'
import { admit, bearerToken } from './admit.ts'

export const REGISTRY_PATH = '/ingest/v1/registry'

/**
 * GET /ingest/v1/registry: the installed update file, for collectors, which verify it themselves.
 * With `If-None-Match`, 304 if the collector has it. JSON if the built-in registry is in use.
 */
export function sendRegistry(store: Store, request: HttpRequest, response: HttpResponse): void {
  if (request.method !== 'GET') return refuse(response, 405, 'Ask by GET', ['allow', 'GET'])
  if (admit(store, bearerToken(request)) === undefined) {
    return refuse(response, 401, 'Invalid monitoring token', ['www-authenticate', 'Bearer'])
  }
  const { release, version } = store.environment.read(() => {
    const { inForce, version } = store.registryReleases
    return { release: inForce, version }
  })
  if (release === undefined) {
    const body = JSON.stringify({ registry: version, built_in: true })
    return response.send({ status: 200, fields: ['content-type', 'application/json'], body })
  }
  const tag = `"${release.sha256}"`
  const fields = ['etag', tag, 'cache-control', 'no-cache']
  if (request.header('if-none-match') === tag) return response.send({ status: 304, fields, body: '' })
  response.send({ status: 200, fields: [...fields, 'content-type', 'application/octet-stream'], body: release.bytes })
}
