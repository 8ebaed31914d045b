import { isSea } from 'node:sea'
import { Worker as NodeWorker, type WorkerOptions } from 'node:worker_threads'
import { partBytes, partNamed, partPath } from './parts.ts'

/** Replaces node:worker_threads in a release: the code of a thread is a part of the program. */
export * from 'node:worker_threads'

export class Worker extends NodeWorker {
  constructor(file: string | URL, options: WorkerOptions = {}) {
    const part = partNamed(file)
    if (part === undefined) super(file, options)
    else if (isSea()) super(partBytes(part).toString(), { ...options, eval: true })
    else super(partPath(part), options)
  }
}
