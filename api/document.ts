/** Path of the OpenAPI document, which openapi.ts creates. */
export const OPENAPI_PATH = '/api/v1/openapi.json'

/** The document as served: ready bytes and their entity tag. */
export interface OpenApiAnswer {
  readonly body: Uint8Array
  readonly gzip: Uint8Array
  readonly tag: string
}
