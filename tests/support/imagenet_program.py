"""Run Bagua's program for ImageNet, which is PyTorch's example with calls of
Bagua, over Fuel's loaders and on the CPU.

It is run by path, in processes of its own: a JSON object with options, then
the arguments of the program.  See tests/interop/records/test_imagenet.py.
"""
import json
import os
import signal
import sys
import tarfile
from types import SimpleNamespace

import torch
import torchvision_operators  # noqa: F401
from torch import distributed

PROGRAM = 'bagua-0.9.2/examples/imagenet/main.py'
# Data loading: from the first text to the second one.
BEGIN, END = '    # Data loading code\n', '    if args.evaluate:\n'
LOADERS = """\
    import fuel
    from fuel.interop.torch import Loader
    from fuel.streams import DataStream
    from fuel.transformers.image import (
        CenterCrop, ImagesFromBytes, MinimumImageDimensions, Normalize,
        RandomHorizontalFlip, RandomResizedCrop)

    def pictures(split):
        stream = DataStream(
            fuel.load(args.data, split, **COLUMNS), batch_size=args.batch_size,
            shuffle=split == 'train', seed=1)
        stream = ImagesFromBytes(stream, which_sources='image')
        if split == 'train':
            stream = RandomResizedCrop(
                stream, (64, 64), draws='example', which_sources='image')
            stream = RandomHorizontalFlip(
                stream, draws='example', which_sources='image')
        else:
            stream = MinimumImageDimensions(
                stream, (72, 72), 'bilinear', shrink=True,
                which_sources='image')
            stream = CenterCrop(stream, (64, 64), which_sources='image')
        return Normalize(
            stream, (.485, .456, .406), (.229, .224, .225), 1 / 255,
            dtype='float32', which_sources='image')

    train_loader = Loader(
        pictures('train'), args.workers, uneven='drop',
        which_sources=('image', 'label'))
    val_loader = Loader(
        pictures('val'), args.workers, shard=None,
        which_sources=('image', 'label'))
    if args.resume:
        train_loader.load_state_dict(checkpoint['loader'])

"""
# Other words of the program, each with what replaces them.
CHANGES = {
    # The loader knows the order of each epoch.
    'train_sampler.set_epoch(epoch)': 'pass',
    # A batch has the names of its files, too. A resumed epoch begins at the
    # step after the checkpoint.
    'enumerate(train_loader)':
        'enumerate(train_loader, len(train_loader) - train_loader.batches_left'
        ')',
    '(images, target)': '(images, target, names)',
    # A checkpoint in the middle of an epoch, and the position in each.
    '        # Pop range "Body of iteration {}".format(i)\n': """\
        if bagua.get_rank() == 0 and i % args.print_freq == 0:
            save_checkpoint(
                {
                    "epoch": epoch,
                    "loader": train_loader.state_dict(),
                    "arch": args.arch,
                    "state_dict": model.state_dict(),
                    "best_acc1": best_acc1,
                    "optimizer": optimizer.state_dict(),
                },
                False,
            )
        FINISHED(epoch, i, names, loss)
""",
    '"epoch": epoch + 1,':
        '"epoch": epoch + 1, "loader": train_loader.state_dict(),',
    # No GPU.
    '.cuda()': '',
    'torch.cuda.set_device(bagua.get_local_rank())': '',
    '"cuda:{}".format(bagua.get_local_rank())': '"cpu"',
    'best_acc1.to(bagua.get_local_rank())': 'best_acc1'}


def read_program(path):
    """Return the program with the changes, from a source distribution."""
    with tarfile.open(path) as archive:
        text = archive.extractfile(PROGRAM).read().decode()
    head, rest = text.split(BEGIN)
    text = head + LOADERS + rest[rest.index(END):]
    for old, new in CHANGES.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


def use_gloo():
    """Let the names of Bagua stand for the ranks of `torch.distributed`."""
    def average(optimizer, *_):
        for group in optimizer.param_groups:
            for parameter in group['params']:
                distributed.all_reduce(parameter.grad)
                parameter.grad /= distributed.get_world_size()

    def with_bagua(model, optimizers, algorithm):
        for optimizer in optimizers:
            optimizer.register_step_pre_hook(average)
        return model

    torch.nn.Module.with_bagua = with_bagua
    algorithms = SimpleNamespace(gradient_allreduce=SimpleNamespace(
        GradientAllReduceAlgorithm=SimpleNamespace))
    interface = SimpleNamespace(
        algorithms=algorithms, get_rank=distributed.get_rank,
        get_local_rank=distributed.get_rank,
        get_world_size=distributed.get_world_size,
        init_process_group=lambda: distributed.init_process_group(
            'gloo', **({} if 'RANK' in os.environ else {
                'store': distributed.HashStore(), 'rank': 0,
                'world_size': 1})))
    sys.modules.update({
        'bagua': SimpleNamespace(torch_api=interface),
        'bagua.torch_api': interface,
        'bagua.torch_api.algorithms': algorithms})


def main(options, *arguments):
    """Run the program in a folder.

    Options: `program`, the source distribution; `folder`, where the program
    writes; `columns`, arguments of `fuel.load`; `kill_at`, the epoch and the
    step after which all ranks are killed.
    """
    options = json.loads(options)
    text = read_program(options['program'])
    os.chdir(options['folder'])
    use_gloo()

    def finished(epoch, step, names, loss):
        with open(f'rank{distributed.get_rank()}.jsonl', 'a') as file:
            file.write(json.dumps(
                [epoch, step, names.tolist(), loss.item()]) + '\n')
        if [epoch, step] == options.get('kill_at'):
            distributed.barrier()
            os.kill(os.getpid(), signal.SIGKILL)

    sys.argv = [PROGRAM, *arguments]
    exec(compile(text, PROGRAM, 'exec'), {
        '__name__': '__main__', 'COLUMNS': options.get('columns', {}),
        'FINISHED': finished})


if __name__ == '__main__':
    main(*sys.argv[1:])
