import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { TrieRule } from '../../registry/compile-trie.ts'

/**
 * The trie with which uBlock Origin matches host names (@gorhill/ubo-core, js/hntrie.js), in
 * WebAssembly: the fastest on npm. It supports only suffixes, and reports that a name matches but
 * not by which rule. It is licensed under GPL-3.0, loaded from node_modules only for this
 * comparison, and not shipped.
 */
interface HnTrieContainer {
  createTrie(): number
  setNeedle(name: string): HnTrieContainer
  add(trie: number): number
  matches(trie: number): number
  enableWASM(fetcher: (path: string) => Promise<unknown>, path: string): Promise<boolean>
}

/** Every Node version has it, but the types of Node 20 leave it to the browser types. */
const webAssembly = Reflect.get(globalThis, 'WebAssembly') as { compile(bytes: Uint8Array): Promise<unknown> }

const packageFile = createRequire(import.meta.url).resolve('@gorhill/ubo-core/package.json')
export const version = (JSON.parse(await readFile(packageFile, 'utf8')) as { version: string }).version

/** The function returns 1 if the name is a rule's domain or below it, otherwise 0. */
export async function build(rules: readonly TrieRule[]): Promise<(name: string) => number> {
  const folder = join(dirname(packageFile), 'js')
  const module = (await import(pathToFileURL(join(folder, 'hntrie.js')).href)) as { default: new () => HnTrieContainer }
  const container = new module.default()
  const fetcher = async (path: string) => webAssembly.compile(await readFile(`${path}.wasm`))
  if (!(await container.enableWASM(fetcher, join(folder, 'wasm/')))) throw new Error('hntrie runs without WebAssembly')
  const trie = container.createTrie()
  for (const { domain } of rules) container.setNeedle(domain).add(trie)
  return (name) => (container.setNeedle(name).matches(trie) >= 0 ? 1 : 0)
}
