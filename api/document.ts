/** Where the OpenAPI document stands (openapi.ts makes it). */
export const OPENAPI_PATH = '/api/v1/openapi.json'

/** The document as the service answers it: ready bytes and their entity tag. */
export interface OpenApiAnswer {
  readonly body: Uint8Array
  readonly tag: string
}
