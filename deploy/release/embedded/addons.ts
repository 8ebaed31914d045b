import { partPath } from './parts.ts'

/** Loads an addon that is part of the program. Throws the system loader's errors. */
export function loadAddon(name: string): unknown {
  const addon = { exports: {} }
  process.dlopen(addon, partPath(name))
  return addon.exports
}

/**
 * libpcap is the host's. Debian and its derivatives name the library after the first version of its
 * ABI, others after the upstream major version. The ABI is the same, so the program includes the
 * addon once for each name.
 */
export function loadPcapAddon(): unknown {
  try {
    return loadAddon('pcap-0.8.node')
  } catch (error) {
    if (!/libpcap\.so/.test((error as Error).message)) throw error
    return loadAddon('pcap-1.node')
  }
}
