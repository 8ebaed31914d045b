import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import {
  type Copy,
  DockerfileParser,
  type From,
  type Healthcheck,
  type Instruction,
  type PropertyInstruction,
} from 'dockerfile-ast'
import { DEBIAN } from './debian.ts'
import { CONTAINER_FILES } from './programs.ts'
import { released, THIS_MACHINE, VERSION } from './released.ts'

/*
 * Builds an image from a container file, instruction by instruction, without a container engine. A
 * stage from Debian runs in a chroot: a copy of the small Debian that the set-up made. A stage from
 * scratch is an empty folder. Unsupported instructions and flags are errors.
 */

/** Replaces the image of the same name. */
const BASES: Readonly<Record<string, string>> = { 'debian:bookworm-slim': DEBIAN }
/** The PATH that an engine gives to a build without one. */
const ENGINE_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export interface Image {
  /** Folder of its files. */
  readonly root: string
  readonly environment: Readonly<Record<string, string>>
  readonly labels: Readonly<Record<string, string>>
  readonly user: string
  readonly workingDirectory: string
  readonly volumes: readonly string[]
  readonly ports: readonly string[]
  readonly entrypoint: readonly string[]
  readonly healthcheck: readonly string[]
}

interface Stage {
  readonly root: string
  readonly environment: Record<string, string>
  readonly variables: Record<string, string>
  readonly labels: Record<string, string>
  user: string
  workingDirectory: string
  volumes: string[]
  ports: string[]
  entrypoint: string[]
  healthcheck: string[]
}

/**
 * @param context folder that COPY reads from.
 * @param values values for ARG.
 */
export function buildImage(
  file: string,
  context: string,
  values: Readonly<Record<string, string>>,
  folder: string,
): Image {
  mkdirSync(folder, { recursive: true })
  const stages = new Map<string, Stage>()
  let stage: Stage | undefined
  for (const instruction of DockerfileParser.parse(readFileSync(file, 'utf8')).getInstructions()) {
    if (instruction.getKeyword() === 'FROM') {
      const from = instruction as From
      const name = from.getBuildStage() ?? `${stages.size}`
      stage = newStage(from.getImage() ?? '', join(folder, name))
      stages.set(name, stage)
    } else if (stage === undefined) throw unknown(instruction)
    else execute(instruction, stage, { stages, context, values })
  }
  if (stage === undefined) throw new Error(`${file}: no FROM`)
  for (const other of stages.values()) if (other !== stage) rmSync(other.root, { recursive: true })
  return stage
}

/**
 * The image of one of our programs, built from the release archive for this machine. Lasts until
 * the test ends.
 */
export function imageOf(
  t: { testdir(): string; teardown(work: () => unknown): void },
  name: 'collector' | 'service',
): Image {
  const archive = released(`posture-${name}`, THIS_MACHINE, '.tar.gz')
  const values = { VERSION, TARGETARCH: THIS_MACHINE === 'x86_64' ? 'amd64' : 'arm64' }
  return buildImage(join(CONTAINER_FILES, `${name}.Dockerfile`), dirname(archive), values, t.testdir())
}

function newStage(image: string, root: string): Stage {
  const base = BASES[image]
  if (base !== undefined) execFileSync('cp', ['--archive', '--reflink=auto', base, root])
  else if (image === 'scratch') mkdirSync(root, { recursive: true })
  else throw new Error(`FROM ${image}: there is no such image here`)
  return {
    ...{ root, environment: {}, variables: {}, labels: {}, user: '', workingDirectory: '/' },
    ...{ volumes: [], ports: [], entrypoint: [], healthcheck: [] },
  }
}

interface Build {
  readonly stages: ReadonlyMap<string, Stage>
  readonly context: string
  readonly values: Readonly<Record<string, string>>
}

function execute(instruction: Instruction, stage: Stage, build: Build): void {
  const text = oneLine(instruction.getRawArgumentsContent() ?? '')
  const value = (given: string): string => substituted(given, { ...stage.variables, ...stage.environment })
  const all = (given: string): string[] => (given.startsWith('[') ? words(given) : given.split(/\s+/)).map(value)
  switch (instruction.getKeyword()) {
    case 'ARG': {
      const [name = '', fallback] = text.split('=')
      const given = build.values[name] ?? fallback
      if (given === undefined) throw new Error(`ARG ${name}: no value`)
      stage.variables[name] = given
      break
    }
    case 'ENV':
      // Variables of one ENV instruction do not see each other.
      Object.assign(
        stage.environment,
        Object.fromEntries(properties(instruction).map(([name, given]) => [name, value(given)])),
      )
      break
    case 'LABEL':
      for (const [name, given] of properties(instruction)) stage.labels[name] = value(given)
      break
    case 'WORKDIR':
      stage.workingDirectory = value(text)
      mkdirSync(join(stage.root, stage.workingDirectory), { recursive: true })
      break
    case 'COPY':
      copy(instruction as Copy, all(text), stage, build)
      break
    case 'RUN':
      run(instruction, stage)
      break
    case 'USER':
      stage.user = value(text)
      break
    case 'VOLUME':
      stage.volumes = all(text)
      break
    case 'EXPOSE':
      stage.ports = all(text)
      break
    case 'ENTRYPOINT':
      stage.entrypoint = words(text)
      break
    case 'HEALTHCHECK': {
      const flags = (instruction as Healthcheck).getFlags().map((flag) => flag.getName())
      if (flags.some((name) => !['interval', 'timeout', 'start-period', 'retries'].includes(name))) {
        throw unknown(instruction)
      }
      stage.healthcheck = words(text.replace(/^.*?\bCMD\s+/, ''))
      break
    }
    default:
      throw unknown(instruction)
  }
}

/**
 * As BuildKit does: files from the context lose their owners, files from a stage keep all
 * attributes.
 */
function copy(instruction: Copy, paths: readonly string[], stage: Stage, { stages, context }: Build): void {
  const flags = instruction.getFlags().map((flag) => `${flag.getName()}=${flag.getValue()}`)
  const target = paths.at(-1) ?? ''
  const destination = join(stage.root, target.startsWith('/') ? '' : stage.workingDirectory, target)
  const [from, ...more] = flags
  if (more.length > 0 || (from !== undefined && !from.startsWith('from='))) throw unknown(instruction)
  mkdirSync(destination, { recursive: true })
  for (const path of paths.slice(0, -1)) {
    if (from === undefined) {
      for (const source of matching(context, path)) {
        execFileSync('cp', ['--preserve=mode,timestamps', source, join(destination, basename(source))])
      }
      continue
    }
    const other = stages.get(from.slice('from='.length))
    if (other === undefined) throw unknown(instruction)
    execFileSync('cp', ['--archive', `${join(other.root, path)}/.`, destination])
  }
}

function matching(context: string, path: string): string[] {
  const pattern = new RegExp(`^${basename(path).replaceAll('.', '\\.').replaceAll('*', '.*')}$`)
  const folder = join(context, dirname(path))
  const found = readdirSync(folder).filter((name) => pattern.test(name))
  if (found.length === 0) throw new Error(`COPY ${path}: there is none`)
  return found.map((name) => join(folder, name))
}

function run(instruction: Instruction, stage: Stage): void {
  if ((stage.user !== '' && stage.user !== 'root') || !existsSync(join(stage.root, 'bin/sh')))
    throw unknown(instruction)
  const script = (instruction.getRawArgumentsContent() ?? '')
    .split('\n')
    .filter((line) => !/^\s*#/.test(line))
    .join('\n')
  const variables = { PATH: ENGINE_PATH, HOME: '/root', ...stage.variables, ...stage.environment }
  // The command runs through `env -i`, so that tap's variables do not reach it.
  const environment = ['-i', ...Object.entries(variables).map(([name, value]) => `${name}=${value}`)]
  const command = ['chroot', stage.root, '/bin/sh', '-c', `cd ${stage.workingDirectory} && { ${script}\n}`]
  execFileSync('env', [...environment, ...command], { stdio: 'pipe', maxBuffer: 64 * 1024 * 1024 })
}

function properties(instruction: Instruction): [string, string][] {
  return (instruction as PropertyInstruction)
    .getProperties()
    .map((property) => [property.getName(), property.getValue() ?? ''])
}

function substituted(text: string, variables: Readonly<Record<string, string>>): string {
  return text.replace(/\$(?:\{(\w+)\}|(\w+))/g, (_, braced?: string, bare?: string) => {
    const found = variables[braced ?? bare ?? '']
    if (found === undefined) throw new Error(`${text}: no such variable`)
    return found
  })
}

function words(json: string): string[] {
  const found: unknown = JSON.parse(json)
  if (!Array.isArray(found) || found.some((word) => typeof word !== 'string')) throw new Error(`not words: ${json}`)
  return found as string[]
}

function oneLine(text: string): string {
  return text.replace(/\\\n\s*/g, '').trim()
}

function unknown(instruction: Instruction): Error {
  return new Error(`${instruction.getTextContent()}: this is not understood here`)
}
