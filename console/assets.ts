import { readFileSync } from 'node:fs'

/** The file that console/build.ts writes into the folder of the compiled files. */
export const ASSETS_FILE = new URL('./assets.json', import.meta.url)

/** A file that browsers load. Its address contains its hash. */
export interface Asset {
  readonly path: string
  readonly type: string
  readonly body: Buffer
  readonly etag: string
  /** The body compressed with gzip, a separate representation with its own ETag. */
  readonly gzip: Buffer
  readonly gzipEtag: string
}

export interface StoredAsset {
  readonly name: string
  readonly path: string
  readonly type: string
  readonly hash: string
  readonly body: string
  readonly gzip: string
}

let stored: readonly StoredAsset[] | undefined

function readAssets(): readonly StoredAsset[] {
  stored ??= JSON.parse(readFileSync(ASSETS_FILE, 'utf8')) as readonly StoredAsset[]
  return stored
}

/** All assets by path. */
export function loadAssets(): ReadonlyMap<string, Asset> {
  return new Map(
    readAssets().map(({ path, type, hash, body, gzip }) => [
      path,
      {
        path,
        type,
        body: Buffer.from(body, 'base64'),
        etag: `"${hash}"`,
        gzip: Buffer.from(gzip, 'base64'),
        gzipEtag: `"${hash}-gzip"`,
      },
    ]),
  )
}

/** The address of a file. */
export function assetPath(name: 'console.css' | 'console.js' | 'icon.svg'): string {
  const path = readAssets().find((each) => each.name === name)?.path
  if (path === undefined) throw new Error(`${ASSETS_FILE.pathname} lacks ${name}`)
  return path
}
