/** What makes up a released program. Files are paths from the repository's root. */
export interface Program {
  /** Of its package, archive and image. */
  readonly name: 'posture-collector' | 'posture-service'
  /** What it is, in a few words. */
  readonly title: string
  /** The same in a sentence. */
  readonly about: string
  readonly commands: readonly { readonly name: string; readonly entry: string }[]
  /** Files that run as threads of their own, as tasks of a pool, or as processes. */
  readonly threads: readonly string[]
  readonly tasks: readonly string[]
  readonly steps: readonly string[]
  /** Files that it reads. */
  readonly files: readonly string[]
  readonly addons: readonly AddonName[]
  /** Flags of Node that its commands are started with. */
  readonly nodeFlags: readonly string[]
  /** The unit of systemd, and the file that the settings of an installed one stand in. */
  readonly unit: string
  readonly settings: string
  /** The setting without which it does not start; empty where there is none. */
  readonly requiredSetting: string
  /** What a Debian package of it needs besides the C library. */
  readonly debianDepends: readonly string[]
}

export type AddonName = 'pcap-0.8.node' | 'pcap-1.node' | 'lmdb.node' | 'uws.node' | 'argon2.node'

export const COLLECTOR: Program = {
  name: 'posture-collector',
  title: 'sensor that sees which AI platforms a network uses',
  about: 'Watches DNS queries and the server names of TLS and QUIC for AI platforms and forwards what matches.',
  commands: [{ name: 'posture-collector', entry: 'dist/collector/main.js' }],
  threads: ['dist/collector/pipeline/capture-thread.js'],
  tasks: ['dist/collector/pipeline/lane-worker.js'],
  steps: ['dist/collector/check/step-process.js'],
  files: [
    'dist/registry/catalog.json',
    'collector/selftest/golden.json',
    'collector/selftest/golden.pcap',
    'package.json',
  ],
  addons: ['pcap-0.8.node', 'pcap-1.node', 'lmdb.node'],
  // Nothing is allocated per packet, so a small young generation is collected no oftener, and 6 MB less are resident.
  nodeFlags: ['--max-semi-space-size=2'],
  unit: 'deploy/systemd/posture-collector.service',
  settings: 'deploy/systemd/collector.env',
  requiredSetting: 'SVC_TOKEN',
  // Its name since time_t has 64 bits on 32-bit machines (Debian 13, Ubuntu 24.04), and before.
  debianDepends: ['libpcap0.8t64 | libpcap0.8'],
}

export const SERVICE: Program = {
  name: 'posture-service',
  title: 'service that says which AI platforms an organization uses',
  about: 'Receives events and logs, folds them into discovery scans and serves the read-only REST API.',
  commands: [
    { name: 'posture-service', entry: 'dist/api/main.js' },
    { name: 'posture-admin', entry: 'dist/engine/admin/main.js' },
  ],
  threads: [
    'dist/api/thread.js',
    'dist/console/thread.js',
    'dist/engine/ingest/lane-thread.js',
    'dist/engine/ingest/socket-thread.js',
    'dist/engine/check/check-worker.js',
  ],
  tasks: ['dist/engine/scan/scan-worker.js'],
  steps: [],
  files: [
    'dist/registry/catalog.json',
    'dist/engine/assess/frameworks.json',
    'dist/console/assets.json',
    'dist/console/common-passwords.txt',
    'package.json',
  ],
  addons: ['lmdb.node', 'uws.node', 'argon2.node'],
  nodeFlags: [],
  unit: 'deploy/systemd/posture-service.service',
  settings: 'deploy/systemd/service.env',
  requiredSetting: '',
  debianDepends: [],
}

export const PROGRAMS = [COLLECTOR, SERVICE] as const
