import { partPath } from './parts.ts'

/** Loads the addon that is a part of the program. Throws what the system's loader says. */
export function loadAddon(name: string): unknown {
  const addon = { exports: {} }
  process.dlopen(addon, partPath(name))
  return addon.exports
}

/**
 * libpcap comes from the host. Debian and its kin name the library after its first interface, all others after the upstream's major
 * version; it is the same interface, and the addon is here once for each name.
 */
export function loadPcapAddon(): unknown {
  try {
    return loadAddon('pcap-0.8.node')
  } catch (error) {
    if (!/libpcap\.so/.test((error as Error).message)) throw error
    return loadAddon('pcap-1.node')
  }
}
