import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Spec, Validation } from '@cyclonedx/cyclonedx-library'
import t from 'tap'
import { isNewer } from '../../../deploy/release/addons.ts'
import { COLLECTOR, PROGRAMS, SERVICE } from '../../../deploy/release/programs.ts'
import { shellFiles } from '../../../deploy/release/shell-files.ts'
import { GLIBC_MAX, NODE_VERSION } from '../../../deploy/release/targets.ts'
import { fileReport, ORDER_LENGTH_BYTES, type Order } from '../../../dry-run/report.ts'
import {
  DEMO_CAPTURE,
  debianPackage,
  type Machine,
  released,
  THIS_MACHINE,
  unpackedTree,
  VERSION,
} from '../../support/released.ts'

const MACHINES: readonly Machine[] = ['x86_64', 'arm64']
/**
 * The newest ABI versions of GCC 8, the compiler of systems with that C library, from libstdc++'s
 * list.
 */
const LIBSTDCXX_MAX = { GLIBCXX: '3.4.25', CXXABI: '1.3.11' } as const

interface Sbom {
  readonly metadata: { readonly component: { readonly name: string; readonly version: string } }
  readonly components: readonly {
    readonly name: string
    readonly version: string
    readonly licenses?: readonly unknown[]
  }[]
}

for (const { name } of PROGRAMS) {
  for (const machine of MACHINES) {
    t.test(`${name} for ${machine}: the SBOM is valid CycloneDX and lists the contents`, async (t) => {
      const text = readFileSync(released(name, machine, '.cdx.json'), 'utf8')
      const fault = await new Validation.JsonStrictValidator(Spec.Version.v1dot6).validate(text)
      t.equal(fault, null)
      const { metadata, components } = JSON.parse(text) as Sbom
      t.equal(metadata.component.name, name)
      const versions = new Map(components.map((component) => [component.name, component.version]))
      t.equal(versions.get('node'), NODE_VERSION)
      for (const part of ['lmdb', 'zod', 'commander', 'msgpackr']) t.ok(versions.has(part), part)
      for (const part of ['pcap', 'libpcap']) t.equal(versions.has(part), name === COLLECTOR.name, part)
      t.notOk(versions.has('tap') || versions.has('esbuild'), 'packages of the build and the tests are not included')
      const texts = readFileSync(released(name, machine, '.licenses.txt'), 'utf8')
      for (const { name: part, version, licenses } of components) {
        t.ok((licenses ?? []).length > 0, `${part}: a license`)
        t.ok(texts.includes(`${part} ${version}`), `${part} ${version}: its text`)
      }
    })
  }

  for (const machine of MACHINES) {
    t.test(`${name} for ${machine}: only the C and C++ libraries are required, in old versions`, async (t) => {
      const lib = join(unpackedTree(t, name, machine), 'lib', name)
      const binaries = readdirSync(lib).filter((file) => file === 'node' || file.endsWith('.node'))
      t.ok(binaries.length > 1)
      for (const file of binaries) {
        const dynamic = execFileSync('readelf', ['--dynamic', '--wide', join(lib, file)], { encoding: 'utf8' })
        for (const [, library = ''] of dynamic.matchAll(/\(NEEDED\).*\[(.+)\]/g)) {
          t.match(library, /^(?:ld-linux-[\w-]+|lib(?:c|dl|gcc_s|m|pthread|rt|stdc\+\+))\.so\.\d$/, file)
        }
        const asked = execFileSync('readelf', ['--version-info', '--wide', join(lib, file)], {
          encoding: 'utf8',
          maxBuffer: 64 * 1024 * 1024,
        })
        for (const [, family = '', version = ''] of asked.matchAll(/Name: (GLIBC|GLIBCXX|CXXABI)_([0-9.]+)/g)) {
          const most = family === 'GLIBC' ? GLIBC_MAX : LIBSTDCXX_MAX[family as keyof typeof LIBSTDCXX_MAX]
          t.notOk(isNewer(version, most), `${file}: ${family}_${version}`)
        }
      }
    })
  }
}

for (const { name, commands } of PROGRAMS) {
  t.test(`${name}: the package and the archive have manual pages and completion scripts`, async (t) => {
    const folder = unpackedTree(t, name, THIS_MACHINE)
    const listed = execFileSync('dpkg-deb', ['--contents', debianPackage(name, THIS_MACHINE)], { encoding: 'utf8' })
    for (const path of shellFiles(commands, { version: VERSION, epochSeconds: 0 }).keys()) {
      t.ok(statSync(join(folder, path)).size > 0, path)
      t.match(listed, new RegExp(`^-rw-r--r-- .* \\./usr/${path}$`, 'm'))
    }
  })
}

for (const { name } of PROGRAMS) {
  t.test(`${name}: the code is Latin-1, since V8 would store any other text in two bytes per character`, async (t) => {
    const lib = join(unpackedTree(t, name, THIS_MACHINE), 'lib', name)
    const code = readdirSync(lib).filter((file) => file.endsWith('.cjs'))
    t.ok(code.length > 2)
    for (const file of code) {
      // A regular expression needs escapes; esbuild writes them in strings only.
      t.equal(/.{0,20}[^\0-\xff].{0,20}/.exec(readFileSync(join(lib, file), 'utf8'))?.[0], undefined, file)
    }
  })
}

t.test('the service reads an uploaded file with what is installed, and may open nothing else', async (t) => {
  const lib = join(unpackedTree(t, SERVICE.name, THIS_MACHINE), 'lib', SERVICE.name)
  const none = { platforms: [], disable: [] }
  const order = Buffer.from(JSON.stringify({ serviceWide: none, own: none, windowStartMs: 0 } satisfies Order))
  const length = Buffer.alloc(ORDER_LENGTH_BYTES)
  length.writeUInt32LE(order.length)
  const flags = ['--permission', `--allow-fs-read=${lib}/`, '--no-warnings']
  const output = execFileSync(join(lib, 'node'), [...flags, join(lib, 'dry-run.cjs')], {
    input: Buffer.concat([length, order, readFileSync(DEMO_CAPTURE)]),
    env: {},
    cwd: '/',
  })
  const report = fileReport.parse(JSON.parse(output.toString()))
  t.match(report, { kind: 'capture', coverage: { names_matched: 90 } })
})

t.test('posture-admin keeps compiled code in a cache that only the user can write to', async (t) => {
  const program = join(unpackedTree(t, SERVICE.name, THIS_MACHINE), 'bin/posture-admin')
  const PATH = process.env['PATH']
  const folder = (name: string, mode: number, owner = 0): string => {
    const path = join(t.testdirName, name)
    mkdirSync(path, { recursive: true })
    chmodSync(path, mode)
    chownSync(path, owner, owner)
    return path
  }
  const own = folder('own', 0o755)
  const opened = folder('opened', 0o755)
  folder('opened/.cache', 0o1777)
  const replaced = folder('replaced', 0o755)
  folder('replaced/.cache', 0o755)
  folder('replaced/.cache/posture-service', 0o755, 65_534)
  const rows: { environment: NodeJS.ProcessEnv; kept?: string }[] = [
    { environment: {} },
    { environment: { HOME: own }, kept: join(own, '.cache/posture-service') },
    { environment: { HOME: folder('other', 0o755, 65_534) } },
    { environment: { HOME: folder('temporary', 0o1777) } },
    { environment: { HOME: folder('group', 0o775) } },
    { environment: { HOME: opened } },
    { environment: { HOME: replaced } },
    {
      environment: { HOME: own, XDG_CACHE_HOME: folder('xdg', 0o700) },
      kept: join(t.testdirName, 'xdg/posture-service'),
    },
    { environment: { HOME: own, XDG_CACHE_HOME: folder('xdg-temporary', 0o1777) } },
    { environment: { XDG_CACHE_HOME: 'relative' } },
    { environment: { HOME: join(own, 'none') } },
    { environment: { HOME: own, NODE_COMPILE_CACHE: join(own, 'named') }, kept: join(own, 'named') },
  ]
  for (const { environment, kept } of rows) {
    const files = () =>
      readdirSync(t.testdirName, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
    rmSync(join(own, '.cache'), { recursive: true, force: true })
    const before = new Set(files())
    const help = execFileSync(program, ['--help'], { cwd: own, env: { PATH, ...environment }, encoding: 'utf8' })
    t.match(help, /^Usage: posture-admin /)
    const written = files().filter((file) => !before.has(file))
    const what = JSON.stringify(environment)
    if (kept === undefined) t.same(written, [], what)
    else t.ok(written.length > 0 && written.every((file) => file.startsWith(kept)), what)
  }
})

t.test('the executable is small enough', async (t) => {
  for (const machine of MACHINES) {
    t.ok(statSync(released(COLLECTOR.name, machine, '.tar.gz')).size < 60e6, machine)
  }
})

for (const [version, than, newer] of [
  ['2.34', '2.28', true],
  ['2.28', '2.34', false],
  ['2.28', '2.28', false],
  ['2.9', '2.28', false],
  ['3.4.30', '3.4.25', true],
  ['3.4.9', '3.4.25', false],
  ['3.4', '3.4.25', false],
  ['3.4.1', '3.4', true],
] as const) {
  t.equal(isNewer(version, than), newer, `${version} beside ${than}`)
}
