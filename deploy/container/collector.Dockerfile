# Image of the collector: Node, the program and the libraries that they load. No shell, no package
# manager, and nothing is extracted at run time. The build context is the output directory of
# `npm run release` (docs/install/containers.md):
#
#   docker build --file deploy/container/collector.Dockerfile --build-arg VERSION=0.1.0 \
#     --tag posture-collector:0.1.0 release

FROM debian:bookworm-slim AS build

RUN apt-get update \
    && apt-get install -y --no-install-recommends libcap2-bin \
    && rm -rf /var/lib/apt/lists/*

ARG VERSION
ARG TARGETARCH
WORKDIR /build
COPY posture-collector-${VERSION}-linux-*.tar.gz posture-collector-${VERSION}-linux-*.tar.gz.sha256 ./

# Verify the archive, and extract the program and its licenses.
RUN set -eu; \
    case "$TARGETARCH" in \
      amd64) machine=x86_64 ;; \
      arm64) machine=arm64 ;; \
      *) echo "there is no release for the machine '$TARGETARCH'" >&2; exit 1 ;; \
    esac; \
    archive="posture-collector-$VERSION-linux-$machine.tar.gz"; \
    sha256sum --check "$archive.sha256"; \
    mkdir -p /rootfs/usr; \
    tar -xzf "$archive" -C /rootfs/usr --strip-components=1 --exclude='*/docs' --no-same-owner \
      "posture-collector-$VERSION/lib/posture-collector" "posture-collector-$VERSION/share/doc/posture-collector"

# The shared libraries at the paths where the loader finds them, with their licenses, and with the
# package metadata from which scanners read versions.
RUN set -eu; \
    cd /rootfs/usr/lib/posture-collector; \
    ldd node ./*.node > /build/libraries; \
    if grep 'not found' /build/libraries; then exit 1; fi; \
    grep -o '/lib[^ ]*' /build/libraries | sort -u > /build/paths; \
    xargs cp --parents --dereference --target-directory=/rootfs < /build/paths; \
    sed 's|.*/|*/|' /build/paths | xargs dpkg-query --search | cut -d: -f1 | sort -u > /build/packages; \
    mkdir -p /rootfs/var/lib/dpkg/status.d /rootfs/etc; \
    cp --dereference /etc/os-release /rootfs/etc/os-release; \
    while read -r package; do \
      cp --parents --dereference --target-directory=/rootfs "/usr/share/doc/$package/copyright"; \
      dpkg-query --status "$package" > "/rootfs/var/lib/dpkg/status.d/$package"; \
    done < /build/packages

# A user, its name, and commands without a shell:
# `docker exec CONTAINER posture-collector counters`.
RUN set -eu; \
    cd /rootfs; \
    printf '%s\n' 'root:x:0:0::/:/sbin/nologin' \
      'posture:x:10001:10001::/var/lib/posture-collector:/sbin/nologin' > etc/passwd; \
    printf '%s\n' 'root:x:0:' 'posture:x:10001:' > etc/group; \
    printf '%s\n' 'hosts: files dns' > etc/nsswitch.conf; \
    mkdir -p usr/bin run tmp; \
    chmod 1777 tmp; \
    install -d -o 10001 -g 10001 -m 0700 var/lib/posture-collector; \
    for command in posture-collector; do \
      sed -i '1i #!/usr/lib/posture-collector/node' "usr/lib/posture-collector/$command.cjs"; \
      chmod 0755 "usr/lib/posture-collector/$command.cjs"; \
      ln -s "../lib/posture-collector/$command.cjs" "usr/bin/$command"; \
    done

# If this works, nothing is missing. The capability is set afterward: without it, the builder could
# no longer start the program. A container runtime adds the capability to the permitted set of a
# non-root process, but execve removes it unless the file has it as well.
RUN set -eu; \
    chroot /rootfs /usr/bin/posture-collector selftest; \
    setcap cap_net_raw=ep /rootfs/usr/lib/posture-collector/node

FROM scratch

ARG VERSION
ARG REVISION=unknown
LABEL org.opencontainers.image.title="posture-collector" \
      org.opencontainers.image.description="Watches DNS queries and the server names of TLS and QUIC for AI platforms and forwards what matches." \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.licenses="Apache-2.0"

COPY --from=build /rootfs /

ENV PATH=/usr/bin
USER 10001:10001
# The outbox. Nothing else is written.
VOLUME ["/var/lib/posture-collector"]

# Unhealthy while /health reports degraded. Its response is in the container's state.
HEALTHCHECK --interval=60s --timeout=10s --start-period=30s --retries=2 CMD ["/usr/lib/posture-collector/node", "--max-old-space-size=16", "-e", "require('node:http').get({ host: '127.0.0.1', port: process.env.HEALTH_PORT || 9090, path: '/health' }, async (answer) => { const text = Buffer.concat(await answer.toArray()).toString(); console.log(text); process.exit(JSON.parse(text).status === 'running' ? 0 : 1) }).on('error', (error) => { console.log(error.message); process.exit(1) })"]

ENTRYPOINT ["/usr/lib/posture-collector/node", "/usr/lib/posture-collector/posture-collector.cjs"]
