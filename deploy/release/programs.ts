/** What makes up a released program. Files are paths from the repository's root. */
export interface Program {
  /** Of its package, archive and image. */
  readonly name: 'posture-collector' | 'posture-service'
  /** What it is, in one line. */
  readonly about: string
  readonly commands: readonly { readonly name: string; readonly entry: string }[]
  /** Files that run as threads of their own, as tasks of a pool, or as processes. */
  readonly threads: readonly string[]
  readonly tasks: readonly string[]
  readonly steps: readonly string[]
  /** Files that it reads. */
  readonly files: readonly string[]
  readonly addons: readonly AddonName[]
}

export type AddonName = 'pcap-0.8.node' | 'pcap-1.node' | 'lmdb.node' | 'uws.node'

export const COLLECTOR: Program = {
  name: 'posture-collector',
  about: 'Watches DNS queries and the server names of TLS and QUIC for AI platforms and forwards what matches.',
  commands: [{ name: 'posture-collector', entry: 'dist/collector/main.js' }],
  threads: ['dist/collector/capture/capture-thread.js'],
  tasks: ['dist/collector/decode/worker.js'],
  steps: ['dist/collector/check/step-process.js'],
  files: [
    'dist/registry/catalog.json',
    'collector/selftest/golden.json',
    'collector/selftest/golden.pcap',
    'package.json',
  ],
  addons: ['pcap-0.8.node', 'pcap-1.node', 'lmdb.node'],
}

export const SERVICE: Program = {
  name: 'posture-service',
  about: 'Receives events and logs, folds them into discovery scans and serves the read-only REST API.',
  commands: [
    { name: 'posture-service', entry: 'dist/api/main.js' },
    { name: 'posture-admin', entry: 'dist/engine/admin/main.js' },
  ],
  threads: [
    'dist/api/thread.js',
    'dist/engine/ingest/lane-thread.js',
    'dist/engine/ingest/socket-thread.js',
    'dist/engine/store/check-worker.js',
  ],
  tasks: ['dist/engine/scan/scan-worker.js'],
  steps: [],
  files: ['dist/registry/catalog.json', 'dist/engine/assess/frameworks.json', 'package.json'],
  addons: ['lmdb.node', 'uws.node'],
}

export const PROGRAMS = [COLLECTOR, SERVICE] as const
