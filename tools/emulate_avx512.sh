#!/bin/sh
# Runs the tests of crates/kernels on an emulated CPU that has AVX-512 with VNNI and BF16 (Sapphire
# Rapids), for machines that have none of it. It takes some minutes; nothing is installed and no
# rights are needed.
#
#   tools/emulate_avx512.sh                 all tests, the ignored ones too
#   tools/emulate_avx512.sh gemm packed     those whose names contain one of these
#
# It needs cargo, and Debian 12 or later with apt-get and dpkg-deb. From the suite `trixie` of the
# mirror that apt uses, about 100 MB are fetched: Bochs 3 (earlier ones have no BF16), a kernel,
# busybox and isolinux. They are kept in $EMULATOR (default: a folder under the temporary one) for
# the next time.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
work=${EMULATOR:-${TMPDIR:-/tmp}/regard-emulator-$(id -u)}
root=$work/root
mkdir -p "$work"

# apt with a state of its own, which knows that suite alone and thinks that nothing is installed.
apt() {
  command=$1
  shift
  "apt-$command" -o Dir::State="$work/apt/state" -o Dir::State::status=/dev/null -o Dir::Cache="$work/apt/cache" \
    -o Dir::Etc::SourceList="$work/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o APT::Sandbox::User="$(id -un)" -o APT::Install-Recommends=false -qq "$@"
}

fetch() {
  mkdir -p "$work/apt/state/lists/partial" "$work/apt/cache/archives/partial"
  mirror=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' | sed -n 's/^Debian Debian //p' | head -n 1)
  [ -n "$mirror" ] || { echo "apt knows no Debian mirror" >&2; exit 1; }
  keys=/usr/share/keyrings/debian-archive-keyring.gpg
  echo "deb [signed-by=$keys] $mirror trixie main" > "$work/apt/sources.list"
  apt get update
  apt get install --download-only -y bochs bochs-term bochsbios busybox-static isolinux syslinux-common xorriso
  kernel=$(apt cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: //p' | head -n 1)
  (cd "$work/apt/cache/archives" && apt get download "$kernel")
  rm -rf "$root"
  mkdir "$root"
  for package in "$work"/apt/cache/archives/*.deb; do
    dpkg-deb -x "$package" "$root"
  done
  touch "$work/fetched"
}
[ -e "$work/fetched" ] || fetch

# The programs are of another release than this one: they run with the libraries that came with
# them.
foreign() {
  program=$1
  shift
  "$root/usr/lib64/ld-linux-x86-64.so.2" --library-path "$root/usr/lib/x86_64-linux-gnu" "$root/usr/bin/$program" "$@"
}

# The test program, and the libraries it wants, in a file system that consists of them and busybox.
test=$(cd "$here" && cargo test -p regard-kernels --lib --no-run --message-format=json |
  sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
disk=$work/disk
rm -rf "$disk" "$work/iso"
mkdir -p "$disk/bin" "$disk/proc" "$disk/dev" "$disk/tmp" "$work/iso"
install -m 755 "$root/usr/bin/busybox" "$disk/bin/busybox"
strip -o "$disk/test" "$test"
for library in $(ldd "$test" | grep -o '/[^ ]*'); do
  mkdir -p "$disk$(dirname "$library")"
  cp -L "$library" "$disk$library"
done
cat > "$disk/init" <<INIT
#!/bin/busybox sh
/bin/busybox mount -t proc none /proc
/bin/busybox mount -t devtmpfs none /dev
/bin/busybox mount -t tmpfs none /tmp
/bin/busybox grep -m 1 'model name' /proc/cpuinfo
/bin/busybox grep -m 1 flags /proc/cpuinfo | /bin/busybox grep -o 'avx512[^ ]*' | /bin/busybox tr '\n' ' '
/test --test-threads=1 --include-ignored $*
echo "status \$?"
/bin/busybox poweroff -f
INIT
chmod 755 "$disk/init"
(cd "$disk" && find . | ./bin/busybox cpio -o -H newc 2>/dev/null | gzip -1) > "$work/iso/initrd"

cp "$root"/boot/vmlinuz-* "$work/iso/vmlinuz"
cp "$root/usr/lib/ISOLINUX/isolinux.bin" "$root/usr/lib/syslinux/modules/bios/ldlinux.c32" "$work/iso/"
# Bochs cannot return from system management mode with page tables of five levels.
cat > "$work/iso/isolinux.cfg" <<'BOOT'
default linux
prompt 0
label linux
  kernel vmlinuz
  initrd initrd
  append console=ttyS0 nokaslr mitigations=off quiet no5lvl
BOOT
foreign xorriso -as mkisofs -quiet -o "$work/boot.iso" -b isolinux.bin -c boot.cat -no-emul-boot -boot-load-size 4 \
  -boot-info-table "$work/iso" 2> "$work/xorriso.log"

# AMX is left out because the kernel does not start with this emulator's; `rfb` is the display that
# needs none.
cat > "$work/bochsrc" <<BOCHS
megs: 512
cpu: model=sapphire_rapids, count=1, ips=20000000, exclude_features="amx,amx_int8,amx_bf16"
romimage: file=$root/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=$root/usr/share/bochs/VGABIOS-lgpl-latest
ata0-master: type=cdrom, path=$work/boot.iso, status=inserted
ata1: enabled=0
boot: cdrom
com1: enabled=1, mode=file, dev=$work/serial.txt
display_library: rfb, options="timeout=0"
clock: sync=none
log: $work/bochs.log
panic: action=fatal
BOCHS
rm -f "$work/serial.txt"
LTDL_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu/bochs/plugins BXSHARE=$root/usr/share/bochs \
  foreign bochs-bin -q -f "$work/bochsrc" < /dev/null > "$work/bochs.out" 2>&1 || true
tr -d '\r' < "$work/serial.txt"
tr -d '\r' < "$work/serial.txt" | grep -q '^status 0$'
