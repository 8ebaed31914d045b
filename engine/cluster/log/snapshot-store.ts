import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { StorageType } from '@nats-io/jetstream'
import { type ObjectInfo, type ObjectStore, Objm, setSha256Backend } from '@nats-io/obj'
import { z } from 'zod'
import { MINUTE_MS, SECOND_MS } from '../../kernel/process/clock.ts'
import { Fault } from '../../kernel/process/error-codes.ts'
import { type Brokers, isNoStream, orUnreachable, patiently, REPLICAS } from './brokers.ts'
import { StreamReader } from './stream-reader.ts'

const BUCKET = 'snapshots'
const STREAM = `OBJ_${BUCKET}`
/** Subjects of the parts of an object, by its id, and of its description, by its name. */
const PARTS = `$O.${BUCKET}.C.`
const DESCRIPTIONS = `$O.${BUCKET}.M.`
const CHUNK_BYTES = 1024 * 1024
/** Without a part for this time, a download ends: the snapshot was deleted. */
const STALLED_MS = 30 * SECOND_MS
/** The older one is for a node that is downloading it while the newer one is made. */
const KEPT = 2

/** What a snapshot contains. */
const snapshotSchema = z.object({
  /** Messages of the stream of changes that are in it. */
  sequence: z.coerce.number(),
  /** The last change in it, and its primary. */
  change: z.coerce.number(),
  generation: z.coerce.number(),
  /** When the stream of changes was created. */
  created: z.string(),
  /** Messages of the log of events that are in it. */
  events: z.coerce.number(),
})
export type SnapshotContent = z.infer<typeof snapshotSchema>

export interface Snapshot extends SnapshotContent {
  readonly name: string
  readonly bytes: number
  readonly madeAtMs: number
}

interface Listed {
  readonly snapshot: Snapshot
  readonly partsId: string
}

/** Copies of the primary's store, on the brokers. Nodes without a store begin with the last one. */
export class SnapshotStore {
  readonly #objects: ObjectStore
  readonly #brokers: Brokers

  private constructor(objects: ObjectStore, brokers: Brokers) {
    this.#objects = objects
    this.#brokers = brokers
  }

  /**
   * Creates the bucket unless it exists. Its size is that of three stores: the one that is
   * uploaded, and two that are kept.
   *
   * @throws Fault BROKERS_UNREACHABLE, BROKERS_UNSAFE
   */
  static async open(brokers: Brokers): Promise<SnapshotStore> {
    // The other one is written in JavaScript and needs several times as long.
    setSha256Backend('native')
    const manager = new Objm(brokers.client)
    const provide = async (): Promise<ObjectStore> => {
      try {
        await brokers.manager.streams.info(STREAM)
      } catch (error) {
        if (!isNoStream(error)) throw error
        // New options for each attempt: the client removes the replicas from those that it gets.
        return manager.create(BUCKET, { storage: StorageType.File, replicas: REPLICAS })
      }
      // The brokers do not let every node create it.
      return manager.open(BUCKET, false)
    }
    return orUnreachable('the snapshots', async () => {
      const objects = await patiently(provide)
      brokers.keep(await patiently(() => brokers.manager.streams.info(STREAM)), false)
      return new SnapshotStore(objects, brokers)
    })
  }

  /** The complete snapshots, the last one first. @throws Fault BROKERS_UNREACHABLE */
  async list(): Promise<Snapshot[]> {
    return (await this.#listed()).map(({ snapshot }) => snapshot)
  }

  /**
   * By requests. The client lists objects with a consumer, and waits until the broker that has the
   * consumer returns if it is lost meanwhile.
   */
  async #listed(): Promise<Listed[]> {
    const objects = await orUnreachable('the snapshots', () => patiently(() => this.#descriptions()))
    const listed = objects.flatMap((info) => {
      const content = snapshotSchema.safeParse(info.metadata)
      return content.success && !info.deleted ? [listedOf(info, content.data)] : []
    })
    return listed.sort(({ snapshot: a }, { snapshot: b }) => b.sequence - a.sequence || b.change - a.change)
  }

  async #descriptions(): Promise<ObjectInfo[]> {
    const { state } = await this.#brokers.manager.streams.info(STREAM, { subjects_filter: `${DESCRIPTIONS}>` })
    const names = Object.keys(state.subjects ?? {}).map(nameOf)
    // One that was deleted meanwhile is null.
    return (await Promise.all(names.map((name) => this.#objects.info(name)))).filter((info) => info !== null)
  }

  /**
   * Uploads a file, and deletes what is older than the last two, or of an earlier cluster. Returns
   * those that remain, the last one first.
   *
   * @param isAlone whether no other node can be uploading. Otherwise nothing is deleted.
   * @throws Fault BROKERS_UNREACHABLE
   */
  add(file: string, content: SnapshotContent, isAlone: () => boolean): Promise<Snapshot[]> {
    return orUnreachable('a new snapshot', () => this.#add(file, content, isAlone))
  }

  async #add(file: string, content: SnapshotContent, isAlone: () => boolean): Promise<Snapshot[]> {
    // What an interrupted upload has left takes the space of this one.
    await this.#deleteAllBut(await this.#listed(), isAlone)
    const metadata = Object.fromEntries(Object.entries(content).map(([name, value]) => [name, String(value)]))
    const stream = Readable.toWeb(createReadStream(file, { highWaterMark: CHUNK_BYTES }))
    const given = {
      name: `store-${content.sequence}-${content.change}`,
      metadata,
      options: { max_chunk_size: CHUNK_BYTES },
    }
    const info = await this.#objects.put(given, stream as Parameters<ObjectStore['put']>[1], { timeout: MINUTE_MS })
    const own = listedOf(info, content)
    const others = (await this.#listed()).filter(({ snapshot }) => {
      return snapshot.name !== given.name && snapshot.created === content.created
    })
    const kept = [own, ...others.slice(0, KEPT - 1)]
    await this.#deleteAllBut(kept, isAlone)
    return kept.map(({ snapshot }) => snapshot)
  }

  /** Also what interrupted uploads have left, and the markers of deleted snapshots. */
  async #deleteAllBut(kept: readonly Listed[], isAlone: () => boolean): Promise<void> {
    const { streams } = this.#brokers.manager
    const { state } = await streams.info(STREAM, { subjects_filter: '>' })
    // Otherwise, these may be parts of the next primary's upload.
    if (!isAlone()) return
    for (const subject of Object.keys(state.subjects ?? {})) {
      const isKept = kept.some(({ snapshot: { name }, partsId }) => {
        return subject.startsWith(DESCRIPTIONS) ? nameOf(subject) === name : subject === PARTS + partsId
      })
      if (!isKept) await streams.purge(STREAM, { filter: subject })
    }
  }

  /**
   * Downloads a snapshot into a new file and flushes it, not faster than the disk: the client's own
   * download keeps in memory what is not written yet.
   *
   * @throws Fault BROKERS_LOST if it was deleted meanwhile or is damaged; BROKERS_UNREACHABLE
   */
  download(snapshot: Snapshot, path: string): Promise<void> {
    return orUnreachable(`the snapshot ${snapshot.name}`, () => this.#copy(snapshot, path))
  }

  async #copy({ name }: Snapshot, path: string): Promise<void> {
    const info = await this.#objects.info(name)
    if (info === null || info.deleted)
      throw new Fault('BROKERS_LOST', `the snapshot ${name} was deleted meanwhile; try again`)
    const file = await open(path, 'wx', 0o600)
    try {
      const digest = await this.#copyParts(info, file)
      if (digest !== info.digest.replaceAll('=', '').slice('SHA-256'.length))
        throw new Fault('BROKERS_LOST', `the snapshot ${name} is damaged: its SHA-256 differs`)
      await file.sync()
    } finally {
      await file.close()
    }
  }

  /** Returns the SHA-256 in base64url. */
  async #copyParts({ name, nuid, size }: ObjectInfo, file: FileHandle): Promise<string> {
    const reader = new StreamReader(this.#brokers, STREAM, PARTS + nuid)
    const stalled = setTimeout(() => reader.stop(), STALLED_MS)
    const hash = createHash('sha256')
    let last = 0
    let bytes = 0
    try {
      while (bytes < size && !reader.isOver) {
        for await (const { seq, data } of reader.read(last + 1)) {
          stalled.refresh()
          last = seq
          bytes += data.length
          hash.update(data)
          await file.appendFile(data)
          if (bytes >= size) break
        }
      }
    } finally {
      clearTimeout(stalled)
      reader.stop()
    }
    if (bytes === size) return hash.digest('base64url')
    // Throws if the brokers do not answer.
    await this.#objects.info(name)
    throw new Fault('BROKERS_LOST', `the snapshot ${name}: ${bytes} of ${size} bytes arrived`)
  }
}

/** The name of an object, which its subject has in base64url. */
function nameOf(subject: string): string {
  return Buffer.from(subject.slice(DESCRIPTIONS.length), 'base64url').toString()
}

function listedOf({ name, size, mtime, nuid }: ObjectInfo, content: SnapshotContent): Listed {
  return { snapshot: { ...content, name, bytes: size, madeAtMs: Date.parse(mtime) }, partsId: nuid }
}
