import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { print } from '../harness.ts'

/**
 * Returns the folder of an npm package that only comparisons need, after installing it if allowed.
 * The package stays installed.
 *
 * @returns undefined if the package is missing and may not or cannot be installed.
 */
export function peerFolder(name: string, version: string, install: boolean): string | undefined {
  const folder = join(tmpdir(), `posture-bench-${name.replaceAll(/[@/]/g, '')}-${version}`)
  if (existsSync(join(folder, 'node_modules', name))) return folder
  return install && installInto(folder, name, version) ? folder : undefined
}

function installInto(folder: string, name: string, version: string): boolean {
  print(`installing the peer ${name} ${version}, which may take a minute`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, allowScripts: { [name]: true } }))
  const words = ['install', '--no-audit', '--no-fund', '--loglevel=error', `${name}@${version}`]
  return spawnSync('npm', words, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] }).status === 0
}
