import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import { collectorProgram } from '../../collector/program.ts'
import { adminProgram } from '../../engine/admin/program.ts'
import { codeBlock } from './markdown.ts'

/*
 * Sample output in the documentation. The commands below run in this process, in order, on a store
 * in an empty directory, as on a terminal of 80 columns. Values that differ between runs (ids,
 * secrets, times) are replaced by fixed values of the same length, so that the pages change only
 * when the programs do.
 */
const COLUMNS = 80
/** The page contains the file that its sample imports. */
const ASSESSMENTS_PAGE = new URL('../../../docs/reference/assessments.md', import.meta.url)
const SAMPLE_TIME = '2026-11-20T09:15:02'

/**
 * The page shows the output between `<!-- output NAME -->` and `<!-- end -->`. A step without a
 * name is preparation.
 */
interface Step {
  readonly name?: string
  readonly command: string
}

/**
 * Files in the working directory that the commands read. Their times are recent, because evidence
 * has a window.
 */
function sampleFiles(nowMs: number): Readonly<Record<string, string>> {
  const requests = [
    ['192.0.2.48', 'api.anthropic.com'],
    ['192.0.2.51', 'chatgpt.com'],
    ['192.0.2.51', 'www.example.com'],
  ]
  const lines = requests.map(([client, host], index) => {
    const time = (nowMs / 1000 - 60 + index).toFixed(3)
    return `${time}    318 ${client} TCP_TUNNEL/200 6120 CONNECT ${host}:443 - HIER_DIRECT/198.51.100.20 -\n`
  })
  const [, csv = ''] = /```csv\n([\s\S]*?)```/.exec(readFileSync(ASSESSMENTS_PAGE, 'utf8')) ?? []
  return { 'access.log': lines.join(''), 'spring.csv': csv }
}

const STEPS: readonly Step[] = [
  { name: 'organization create', command: 'posture-admin organization create Acme --domain acme.example' },
  { name: 'key create', command: 'posture-admin key create dashboard --org Acme --scope discovery:read' },
  { name: 'token generate', command: 'posture-admin token generate branch --org Acme' },
  { name: 'ingest file', command: 'posture-admin ingest file access.log' },
  { name: 'ingest sources', command: 'posture-admin ingest sources --org Acme --json' },
  { name: 'scan run', command: 'posture-admin scan run --org Acme' },
  { name: 'approval add', command: 'posture-admin approval add Claude --org Acme' },
  {
    name: 'assessment import',
    command:
      'posture-admin assessment import spring.csv --org Acme --framework nist-csf-2 --title "Spring 2026" --complete',
  },
  { name: 'recommendation list', command: 'posture-admin recommendation list --org Acme' },
  { name: 'audit list', command: 'posture-admin audit list --org Acme --last 1 --json' },
]

/** The sh and text block of each named step. */
export async function sampleOutputs(): Promise<ReadonlyMap<string, string>> {
  const directory = await mkdtemp(join(tmpdir(), 'posture-docs-'))
  const outputs = new Map<string, string>()
  const before = { folder: process.cwd(), token: process.env['SVC_TOKEN'], data: process.env['DATA_DIR'] }
  try {
    for (const [file, text] of Object.entries(sampleFiles(Date.now()))) await writeFile(join(directory, file), text)
    process.chdir(directory)
    process.env['DATA_DIR'] = join(directory, 'data')
    const stable = new StableText()
    for (const { name, command } of STEPS) {
      const output = await outputOf(command)
      const [token] = /svc_mt_[0-9a-f]+/.exec(output) ?? []
      if (token !== undefined) process.env['SVC_TOKEN'] = token
      const shown = stable.text(output).trimEnd()
      if (name !== undefined) outputs.set(name, `${codeBlock('sh', command)}\n\n${codeBlock('text', shown)}`)
    }
  } finally {
    process.chdir(before.folder)
    restore('SVC_TOKEN', before.token)
    restore('DATA_DIR', before.data)
    await rm(directory, { recursive: true, force: true })
  }
  return outputs
}

function restore(variable: string, value: string | undefined): void {
  if (value === undefined) delete process.env[variable]
  else process.env[variable] = value
}

/** The output of a command on a terminal. */
async function outputOf(command: string): Promise<string> {
  const [name, ...words] = [...command.matchAll(/"([^"]*)"|[^ ]+/g)].map(([word, quoted]) => quoted ?? word)
  const program: Command = name === 'posture-collector' ? collectorProgram() : adminProgram()
  const { stdout } = process
  const real = { write: stdout.write, isTTY: stdout.isTTY, columns: stdout.columns }
  let output = ''
  Object.assign(stdout, {
    isTTY: true,
    columns: COLUMNS,
    write: (text: string | Uint8Array) => {
      output += typeof text === 'string' ? text : Buffer.from(text).toString()
      return true
    },
  })
  try {
    await program.parseAsync(words, { from: 'user' })
  } finally {
    Object.assign(stdout, real)
  }
  return output
}

/** Replaces values that differ between runs. Equal values get equal replacements in all outputs. */
class StableText {
  readonly #replacements = new Map<string, string>()

  text(output: string): string {
    const known = output
      .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, (id) => this.#hex(id))
      .replace(/(?<=svc_(?:pk|mt)_)[0-9a-f]+/g, (secret) => this.#hex(secret))
      .replace(/\b[0-9a-f]{8}\b/g, (prefix) => this.#prefix(prefix))
      .replace(/\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d/g, SAMPLE_TIME)
    return known.replace(/operator [\w-]+/g, 'operator root')
  }

  /**
   * Replaces hex digits, depending only on the number of previous replacements. Keeps other
   * characters.
   */
  #hex(value: string): string {
    const seed = this.#replacements.size + 1
    let state = (seed * 0x9e3779b1) >>> 0
    const made = value.replace(/[0-9a-f]/g, () => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0
      return (state >>> 28).toString(16)
    })
    const replacement = this.#replacements.get(value) ?? made
    this.#replacements.set(value, replacement)
    return replacement
  }

  #prefix(prefix: string): string {
    for (const [value, replacement] of this.#replacements) {
      if (value.startsWith(prefix)) return replacement.slice(0, prefix.length)
    }
    return prefix
  }
}
