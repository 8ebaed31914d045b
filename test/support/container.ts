import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Image } from './image.ts'
import { runtimeDefault } from './seccomp.ts'

/*
 * Runs an image with runc, as container engines do. An engine writes its decisions into a
 * configuration of the OCI runtime specification (https://github.com/opencontainers/runtime-spec).
 * This file makes that configuration from a manifest.
 */

/** A manifest's restrictions of a container. Sizes are in bytes. */
export interface Restrictions {
  readonly user: { readonly uid: number; readonly gid: number }
  readonly capabilities: readonly string[]
  readonly noNewPrivileges: boolean
  readonly readOnlyRoot: boolean
  readonly memoryBytes: number
  readonly cpus: number
  readonly pids?: number
  /** Whether the container has a /dev/shm, which every user can write. */
  readonly sharedMemory: boolean
  readonly temporary: readonly Temporary[]
  /** Mount point of the volume in the container. */
  readonly volume: string
}

export interface Temporary {
  readonly path: string
  readonly bytes: number
  /**
   * Mount options of a tmpfs inside the container. Without options, the file system is mounted on
   * this machine, as kubelet does.
   */
  readonly options?: readonly string[]
}

export interface Placement {
  /** Folder on this machine that becomes the volume. */
  readonly volume: string
  /** Name of the network namespace. */
  readonly network: string
  /** Lines of /etc/hosts, which every engine mounts. */
  readonly hosts?: string
  readonly environment?: Readonly<Record<string, string>>
  /** Read-only mounts: paths on this machine by paths in the container. */
  readonly files?: Readonly<Record<string, string>>
  /** Replaces the image's entrypoint. */
  readonly command?: readonly string[]
  /**
   * How the engine grants capabilities to a user other than root. containerd, CRI-O and Docker set
   * them as bounding, permitted and effective, and execve clears the last two. Podman makes them
   * ambient as well.
   */
  readonly granting?: 'permitted' | 'ambient'
}

interface Scope {
  testdir(): string
  testdirName: string
  teardown(work: () => unknown): void
}

export interface Ended {
  readonly status: number | null
  readonly output: string
}

export class Container {
  static #made = 0
  readonly id: string
  readonly #state: string
  readonly #child: ChildProcess
  #mounts: string[] = []
  readonly ended: Promise<Ended>
  output = ''

  private constructor(id: string, state: string, bundle: string) {
    this.id = id
    this.#state = state
    this.#child = spawn('runc', ['--root', state, 'run', '--bundle', bundle, id], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'] },
    })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (piece: string) => {
        this.output += piece
      })
    }
    this.ended = once(this.#child, 'close').then(([status]) => ({
      status: status as number | null,
      output: this.output,
    }))
  }

  /** Starts the container. It is removed when the test ends. */
  static start(t: Scope, image: Image, restrictions: Restrictions, placement: Placement): Container {
    const id = `spsc${process.pid}x${Container.#made++}`
    const bundle = join(t.testdirName, `${id}-bundle`)
    const state = join(t.testdirName, 'runc')
    mkdirSync(bundle, { recursive: true })
    writeFileSync(join(bundle, 'hosts'), `127.0.0.1 localhost\n${placement.hosts ?? ''}\n`)
    writeFileSync(
      join(bundle, 'config.json'),
      JSON.stringify(configuration(id, image, restrictions, { ...placement, bundle })),
    )
    const mounted = restrictions.temporary.filter(({ options }) => options === undefined)
    for (const { path, bytes } of mounted) {
      mkdirSync(hostPath(bundle, path))
      execFileSync('mount', ['-t', 'tmpfs', '-o', `mode=0777,size=${bytes}`, id, hostPath(bundle, path)])
    }
    const container = new Container(id, state, bundle)
    container.#mounts = mounted.map(({ path }) => hostPath(bundle, path))
    t.teardown(() => container.remove())
    return container
  }

  /** PID of the container's first process, in this machine's PID namespace. */
  get pid(): number {
    const state = JSON.parse(execFileSync('runc', ['--root', this.#state, 'state', this.id], { encoding: 'utf8' })) as {
      pid: number
    }
    return state.pid
  }

  /** Ends it, and removes what it has mounted on this machine. */
  async remove(): Promise<void> {
    this.kill('KILL')
    await this.ended
    for (const path of this.#mounts.splice(0)) execFileSync('umount', [path])
  }

  kill(signal: 'KILL' | 'TERM'): void {
    try {
      execFileSync('runc', ['--root', this.#state, 'kill', this.id, signal], { stdio: 'pipe' })
    } catch {
      // The container has ended.
    }
  }

  /**
   * Runs a command in the container, as `docker exec` does. Returns status and output, never
   * throws.
   */
  async exec(...args: string[]): Promise<Ended> {
    const run = promisify(execFile)('runc', ['--root', this.#state, 'exec', this.id, ...args], {
      env: { PATH: process.env['PATH'] },
    })
    return run.then(
      ({ stdout, stderr }) => ({ status: 0, output: stdout + stderr }),
      (error: { code?: number; stdout?: string; stderr?: string }) => ({
        status: error.code ?? null,
        output: `${error.stdout}${error.stderr}`,
      }),
    )
  }

  /** A field of /proc/PID/status of the container's first process. */
  status(field: string): string {
    const text = readFileSync(`/proc/${this.pid}/status`, 'utf8')
    return new RegExp(`^${field}:[^\\S\\n]*(.*)$`, 'm').exec(text)?.[1] ?? ''
  }

  /**
   * Counters of the container's control group: peak memory use including page cache, and how often
   * the limit was hit.
   */
  memory(): { readonly peakBytes: number; readonly failures: number } {
    const text = execFileSync('runc', ['--root', this.#state, 'events', '--stats', this.id], { encoding: 'utf8' })
    const { data } = JSON.parse(text) as { data: { memory: { usage: { max?: number; failcnt?: number } } } }
    return { peakBytes: data.memory.usage.max ?? 0, failures: data.memory.usage.failcnt ?? 0 }
  }
}

function configuration(
  id: string,
  image: Image,
  restrictions: Restrictions,
  placement: Placement & { readonly bundle: string },
): unknown {
  const { user, noNewPrivileges, readOnlyRoot, temporary } = restrictions
  const capabilities = restrictions.capabilities.map((name) => `CAP_${name}`)
  const ambient = placement.granting === 'ambient' ? capabilities : []
  return {
    ociVersion: '1.0.2',
    process: {
      user,
      args: placement.command ?? image.entrypoint,
      env: Object.entries({ ...image.environment, ...placement.environment }).map(
        ([name, value]) => `${name}=${value}`,
      ),
      cwd: image.workingDirectory,
      capabilities: {
        ...{ bounding: capabilities, permitted: capabilities, effective: capabilities },
        ...{ inheritable: ambient, ambient },
      },
      noNewPrivileges,
    },
    root: { path: image.root, readonly: readOnlyRoot },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      ...tmpfs('/dev', ['nosuid', 'strictatime', 'mode=755', 'size=65536k']),
      ...(restrictions.sharedMemory
        ? tmpfs('/dev/shm', ['nosuid', 'noexec', 'nodev', 'mode=1777', 'size=65536k'])
        : []),
      { destination: '/etc/hosts', type: 'bind', source: join(placement.bundle, 'hosts'), options: ['bind', 'ro'] },
      { destination: '/sys', type: 'none', source: '/sys', options: ['rbind', 'nosuid', 'noexec', 'nodev', 'ro'] },
      ...temporary.flatMap(({ path, bytes, options }) =>
        options === undefined
          ? [{ destination: path, type: 'bind', source: hostPath(placement.bundle, path), options: ['rbind', 'rw'] }]
          : tmpfs(path, [...options, `size=${bytes}`]),
      ),
      { destination: restrictions.volume, type: 'bind', source: placement.volume, options: ['rbind', 'rw'] },
      ...Object.entries(placement.files ?? {}).map(([destination, source]) => {
        return { destination, type: 'bind', source, options: ['rbind', 'ro'] }
      }),
    ],
    linux: {
      cgroupsPath: `/${id}`,
      resources: {
        devices: [{ allow: false, access: 'rwm' }],
        memory: { limit: restrictions.memoryBytes },
        cpu: { quota: restrictions.cpus * 100_000, period: 100_000 },
        ...(restrictions.pids === undefined ? {} : { pids: { limit: restrictions.pids } }),
      },
      namespaces: [
        ...['pid', 'ipc', 'uts', 'mount'].map((type) => ({ type })),
        { type: 'network', path: `/run/netns/${placement.network}` },
      ],
      seccomp: runtimeDefault(capabilities),
      maskedPaths: [
        '/proc/kcore',
        '/proc/keys',
        '/proc/timer_list',
        '/proc/sched_debug',
        '/sys/firmware',
        '/proc/scsi',
      ],
      readonlyPaths: ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'],
    },
  }
}

function tmpfs(destination: string, options: readonly string[]): unknown[] {
  return [{ destination, type: 'tmpfs', source: 'tmpfs', options }]
}

/** Path on this machine of a mount of the container. */
function hostPath(bundle: string, path: string): string {
  return join(bundle, path.replaceAll('/', '-').slice(1))
}
