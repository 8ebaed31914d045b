/**
 * Whether the file system that contains a path is mounted noexec, from the text of
 * /proc/self/mountinfo (proc(5)).
 */
export function mountedNoexec(path: string, mountinfo: string): boolean {
  let deepest = ''
  let noexec = false
  for (const line of mountinfo.split('\n')) {
    // 36 35 98:0 /root /mount/point rw,noexec shared:1 - ext4 /dev/sda1 rw
    const [, , , , escaped = '', options = ''] = line.split(' ')
    const point = escaped.replace(/\\([0-7]{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)))
    if (point === '' || !isWithin(path, point)) continue
    // Of two mounts on one directory, the later one hides the earlier.
    if (point.length < deepest.length) continue
    deepest = point
    noexec = options.split(',').includes('noexec')
  }
  return noexec
}

function isWithin(path: string, folder: string): boolean {
  return folder === '/' || path === folder || path.startsWith(`${folder}/`)
}
