import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Brokers } from './brokers.ts'
import { Disk } from './small-disk.ts'

const MEGABYTE = 1024 * 1024
/** The broker writes meanwhile, so not everything can be allocated. */
const WRITTEN_MEGABYTES = 64
/**
 * Kills processes, then stops file systems: EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH
 * (Linux, include/uapi/linux/ext4.h). Everything that was not flushed is lost.
 *
 * One process does all of it, so that only microseconds are between the broker's last instruction
 * and its disk's last write. The processes die first: if a broker saw write errors, which no power
 * failure shows to it, what it acknowledged meanwhile would count as lost.
 */
const POWER_FAILURE = `
  my ($processes, @directories) = @ARGV;
  my $no_log_flush = pack 'L', 2;
  kill KILL => split /,/, $processes;
  for (@directories) {
    open my $directory, '<', $_ or die "$_: $!";
    ioctl $directory, 0x8004587d, $no_log_flush or die "$_: $!";
  }`

/**
 * An ext4 file system of its own in a file, on a loop device. Unmounting frees the device. For
 * programs that run in private namespaces (namespace.ts), which end with their mounts.
 */
export class BrokerDisk extends Disk {
  readonly #image: string

  constructor(t: { teardown(work: () => unknown): void }, image: string, megabytes: number) {
    // Not in the test's directory, which is removed before the teardown unmounts.
    super(mkdtempSync(join(tmpdir(), 'broker-disk-')))
    this.#image = image
    writeFileSync(image, '')
    truncateSync(image, megabytes * MEGABYTE)
    execFileSync('mkfs.ext4', ['-q', '-m', '0', image])
    this.mount()
    t.teardown(() => {
      this.unmount()
      rmdirSync(this.directory)
    })
  }

  /** The directory for a broker. The root has the ballast. */
  get data(): string {
    return join(this.directory, 'data')
  }

  /** Allocates, which takes no time, and writes only the rest. */
  override fillUpTo(megabytesLeft: number): void {
    const megabytes = Math.floor(this.freeBytes / MEGABYTE) - megabytesLeft - WRITTEN_MEGABYTES
    const file = join(this.directory, 'allocated')
    if (megabytes > 0) execFileSync('fallocate', ['--length', `${megabytes}M`, file])
    super.fillUpTo(megabytesLeft)
  }

  override free(): void {
    super.free()
    rmSync(join(this.directory, 'allocated'), { force: true })
  }

  /** Replays the journal, if the file system was stopped. */
  mount(): void {
    execFileSync('mount', ['-o', 'loop', this.#image, this.directory])
  }

  unmount(): void {
    execFileSync('umount', [this.directory])
  }
}

/** Stops the power of brokers. They stay down until `restorePower`. */
export async function stopPower(
  brokers: Brokers,
  disks: readonly BrokerDisk[],
  which: readonly number[],
): Promise<void> {
  const directories = which.map((index) => disks[index]?.directory ?? '')
  const processes = which.map((index) => brokers.pid(index)).join(',')
  execFileSync('perl', ['-e', POWER_FAILURE, processes, ...directories])
  await Promise.all(which.map((index) => brokers.ended(index)))
}

/** Mounts the disks again, and starts the brokers with what is on them. */
export function restorePower(brokers: Brokers, disks: readonly BrokerDisk[], which: readonly number[]): void {
  for (const index of which) {
    disks[index]?.unmount()
    disks[index]?.mount()
    brokers.restart(index)
  }
}
